"""Words of keys and of states, over languages: what a member holds, and what its value means."""

from typing import Final

UNIT_KEYS: Final = frozenset(
    """
    eenheid einheit jednostka unidad unidade unit units unità unité uom 单位 単位
    """.split()
)
CURRENCY_KEYS: Final = frozenset(
    """
    ccy cur currency devise moeda moneda valuta waehrung waluta währung 货币 通貨
    """.split()
)
LABEL_KEYS: Final = frozenset(
    """
    code email id key label name no nr number ref sku slug symbol tag title
    """.split()
)
NAME_KEYS: Final = frozenset(
    """
    carrier cidade città city ciudad hotel id item label lender miasto naam name nazwa nom nombre nome
    product ref sku stad stadt station symbol ticker titel title titolo titre titulo título ville 名前 名称 商品
    """.split()
)
NO_OPERANDS: Final = frozenset(
    """
    account binario build code day epoch fax gate gleis hash iban id index lat latitude limit line lng lon
    longitude month no nr number offset page phone platform plz port position postcode rank ref room seed
    sku tel timestamp ts version voie year zip
    """.split()
)
"""Words of keys whose numbers name something, so that nobody reckons with them."""
STATE_KEYS: Final = frozenset(
    """
    状態 状态 ステータス ステイタス 結果 结果
    besluit condition decision decisión decisão decyzja décision entscheidung ergebnis estado outcome
    overall phase result resultado situacao stage stan stand state stato status statut zustand
    """.split()
)
FAILED: Final = frozenset(
    """
    abgelehnt aborted blocked canceled cancelled crashloopbackoff critical declined degraded denied down
    error errored expired fail failed failure falhou fallido fallito fehler fehlgeschlagen gesperrt
    geweigerd imagepullbackoff insufficient invalid lost mislukt negado nieudane odrzucona odrzucone
    offline overdue rechazado recusado refused refusé rejected returned rifiutato rollback rolled
    storniert suspended timeout unavailable unhealthy unpaid échec 失敗 失败
    """.split()
)
PENDING: Final = frozenset(
    """
    attente attesa ausstehend awaiting bearbeitung behandeling cours draft eingegangen gepland geplant
    hold initiated lavorazione oczekuje offen open partial pendente pendiente pending planifie preparing
    proceso processamento processing progress queued registered registrado requested review scheduled
    submitted tentative trakcie unconfirmed wachtend waiting 保留 処理中 处理中 审核中 待处理
    """.split()
)
GOOD_FLAGS: Final = frozenset(
    """
    accepted accepts active allowed applied approved available booked cancellable complete completed
    confirmed covered created deleted delivered disponibile disponible disponível eligible enabled erfolg
    exito granted included includes incluido inclus incluso ok open paid permitted possible refundable
    reserved saved sent shipped submitted stock succes success successful successo succès sucesso sukces
    supported transferable updated valid verfügbar verified éxito
    """.split()
)
BAD_FLAGS: Final = frozenset(
    """
    archived banned beta blocked cached canceled cancelled closed damaged deleted draft error expired
    failed hidden late locked more overdue partial private recurring required stale suspended test
    truncated
    """.split()
)
ACTIONS: Final = frozenset(
    """
    applied booked created deleted erfolg exito ok reserved saved sent submitted succes success successful
    successo succès sucesso updated éxito
    """.split()
)
CACHED_KEYS: Final = frozenset(
    """
    cache cached from_cache stale
    """.split()
)
MORE_KEYS: Final = frozenset(
    """
    has_more has_next hasmore more next next_cursor next_page next_page_token nexttoken truncated
    """.split()
)
TOTAL_KEYS: Final = frozenset(
    """
    anzahl count gesamt matches_total total total_count total_items total_results totalcount totale
    """.split()
)
CHANGE_KEYS: Final = frozenset(
    """
    change delta diff difference growth mom pct_change trend variación variation variazione variação
    verschil veränderung yoy zmiana
    """.split()
)
ASKS_TRACE: Final = frozenset(
    """
    debug erreur error errore exception fehler log logs stack stacktrace trace traceback
    """.split()
)
ASKS_HOST: Final = frozenset(
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
PERSONAL_KEYS: Final = frozenset(
    """
    birthdate bsn cpf cvc cvv diagnose diagnosis dni dob geburtsdatum gehalt iban nie nif passport pesel
    reisepass salaire salario salaris salary ssn steuernummer stipendio sueldo
    """.split()
)
CONTACT_KEYS: Final = frozenset(
    """
    address adres adresse direccion email endereco indirizzo mobile phone tel telefon telefone telefono
    """.split()
)
ASKS_CONTACT: Final = frozenset(
    """
    address adresse anrufen appeler bellen call chi chiamare contact contacto contato contatto correo
    email erreichen indirizzo joindre kontakt kto llamar mail number numer nummer numéro phone quem qui
    quién reach scrivere telefon telefone teléfono téléphone wer who wie write zadzwonić
    """.split()
)
GENERAL: Final = frozenset(
    """
    24x7 2d 2fa 3d 401k 4k 8k b2b c02 ch4 co2 covid19 ec2 gpt4 h264 h2o http2 ipv4 ipv6 k8s md5 mp3 mp4
    mp5 oauth2 p50 p90 p95 p99 pm10 pm25 s3 sha256 utf8 x64 x86
    """.split()
)
LASTING: Final = frozenset(
    """
    duration elapsed eta latency length runtime time timeout took ttl uptime wait
    """.split()
)
ZONE_WORDS: Final = frozenset(
    """
    bst cest cet edt est gmt ist jst pdt pst timezone tz utc zone
    """.split()
)
PERSON_GROUPS: Final = frozenset(
    """
    enrolled participants attendees members customers patients users guests students employees contacts clients people
    teilnehmer kunden patienten mitglieder participantes clientes pacientes alumnos alunos alunni clienti pazienti
    participants élèves clients deelnemers klanten leden uczestnicy klienci pacjenci 参加者 顧客 会員 客户 成员
    """.split()
)
"""Keys of lists of persons."""
OPPOSITES: Final = tuple(
    tuple(pair.split("/"))
    for pair in """
    open/closed locked/unlocked online/offline enabled/disabled on/off available/unavailable approved/rejected
    offen/geschlossen zu/offen ouvert/fermé abierto/cerrado abierta/cerrada aberto/fechado aberta/fechada aperto/chiuso
    aperta/chiusa otwarte/zamknięte otwarty/zamknięty
    """.split()
)
"""States of which a thing has one."""
