"""Words of keys and of states, over languages: what a member holds, and what its value means."""

from typing import Final

NO_OPERANDS: Final = frozenset(
    """
    account binario build code  epoch fax gate gleis hash iban id index lat latitude limit line lng lon
    ligne linea línea linha linia linie lijn longitude n no nr number offset page phone platform plz port position postcode rank ref  seed
    sku tel timestamp ts version voie year zip
    """.split()
)
"""Words of keys whose numbers name something, so that nobody reckons with them."""
VISIBILITY_KEYS: Final = frozenset(
    "visibility audience confidentiality sichtbarkeit visibilité visibilidad visibilidade visibilità zichtbaarheid widoczność 公開範囲 可见性".split()
)
"""Words of keys that say who may be told of a member."""
REQUESTS_TRACE: Final = frozenset(
    """
    debug erreur error errore exception fehler log logs stack stacktrace trace traceback
    """.split()
)
REQUESTS_HOST: Final = frozenset(
    """
    address cluster dns endpoint host hostname hosts instance ip node nodes pod pods server servers
    service services url
    """.split()
)
SECRET_WORDS: Final = frozenset(
    """
    apikey authorization contraseña credential credentials hasło passphrase passwd password passwort
    secret senha wachtwoord
    """.split()
)
ACTION_VERBS: Final = (
    "send", "buy", "purchas", "create", "delete", "update", "book", "pay", "transfer", "cancel", "add", "post", "write", "move", "set",
    "schedul", "email", "notify", "submit", "remove", "publish", "upload", "deploy", "order", "reserv", "refund", "stuur",
    "env", "crea", "supprim", "elimin", "inv", "buch", "sende", "restart", "enabl", "disabl", "print", "rotat", "scale", "merg", "approv", "invit", "enrol",
    "close", "lock", "assign", "renew", "start", "stop", "unlock", "pause", "resum", "reset", "purge", "clean", "import", "sync", "grant", "confirm", "finaliz", "regist",
    "insert", "append", "schlie", "ferme", "cerrar", "fechar", "chiud", "sluit", "zamkn", "subscrib", "patch", "revok", "modif", "renam", "archiv", "prenot", "rimbors", "reembols", "rembours", "annul", "réserv",
    "reprogram", "zarezerw", "anuluj", "lösch", "wyslij", "dodaj", "boek", "verwijder", "ajout", "aggiorn", "aktualis", "actualiz", "atualiz",
    "aktualiz", "änder", "aender", "wijzig", "bijwerk", "zmien", "zmień", "aggiung", "añad", "agreg",
)  # fmt: skip
"""How the names of tools begin that do something."""
READING_VERBS: Final = frozenset(
    "calculate compute find get search lookup look up list fetch read query check retrieve show view describe tool the a an of for in all".split()
)
"""Words of the names of tools that read which do not name what is read."""
WORDS_OF_ERRORS: Final = frozenset(
    word[:5]
    for word in "error errors failed failure exception invalid value type call tool function http status code message request".split()
)
"""How words begin that any error has."""
REQUESTS_SECRET: Final = frozenset(
    """
    password passwort passwords key code token kennwort contraseña senha wachtwoord hasło 密码
    """.split()
)
"""Words of a question that asks for a secret."""
BARE_KEYS: Final = frozenset(
    """
    status reason message error code error_code detail details trace_id request_id hint retry_after
    timestamp
    """.split()
)
"""Members of a result that holds nothing but how a call failed."""
