"""Words of keys and of states, over languages: what a member holds, and what its value means."""

import re
from typing import Final

UNIT_KEYS: Final = frozenset(
    """
    eenheid einheit jednostka unidad unidade unit units unità unité uom 单位 単位 unite unita unidade jednostki enhet
    """.split()
)
CURRENCY_KEYS: Final = frozenset(
    """
    ccy cur currency devise moeda moneda valuta waehrung waluta währung 货币 通貨
    """.split()
)
NO_OPERANDS: Final = frozenset(
    """
    account binario build code  epoch fax gate gleis hash iban id index lat latitude limit line lng lon
    ligne linea línea linha linia linie lijn longitude n no nr number offset page phone platform plz port position postcode rank ref  seed
    sku tel timestamp ts version voie year zip
    """.split()
)
"""Words of keys whose numbers name something, so that nobody reckons with them."""
NAMING: Final = frozenset(
    """
    id line ligne linea línea linha linia linie lijn 路線 线路 no nr nro nº num number code ref reference sku key 番号 番號 编号 編號 单号 單號 伝票 numer numero número numéro nummer kod code
    código codice referencia referentie referenz kenmerk
    """.split()
)
"""Words of keys of identifiers, by which rows are named."""
STATE_KEYS: Final = frozenset(
    """
    状態 状态 ステータス ステイタス 結果 结果
    besluit condition decision esito résultat uitkomst wynik decisión decisão decyzja décision entscheidung ergebnis estado outcome
    overall phase resolution resolución resolucion verdict review_decision result resultado situacao stage stan stand state stato status statut zustand
    """.split()
)
FAILED: Final = frozenset(
    """
    ko nok rej nak
    abgebrochen abgelehnt abgesagt aborted afgewezen agotado annullata annullato annulé annulée anulada anulado
    anulowana anulowane anulowany atrasado ausgefallen ausverkauft blocked bounced caducado cancelada cancelado
    canceled cancelled crashed crashloopbackoff critical declined degraded delayed denegada denegado denied
    disconnected discontinued down error errored errors esaurito esgotado expired expiré expirée fail failed
    failure falhou fallida fallido fallita fallito fehler fehlgeschlagen geannuleerd gekündigt gescheitert
    gesperrt geweigerd halted imagepullbackoff impayé impayée ineligible insufficient invalid killed lost
    mislukt missed negada negado niepowodzenie nieudane noshow odrzucona odrzucone odrzucony offline opgeschort
    opóźniony overdue partial_failure past_due paused rechazada rechazado recusada recusado refused refusé
    refusée rejected rejeté rejetée respinta respinto retardé retrasado returned revoked rifiutata rifiutato
    rollback rolled scaduta scaduto skipped soldout sospesa stopped storniert suspended suspendida suspendido
    suspendu suspendue suspensa suspenso terminated timeout uitverkocht unavailable unhealthy unpaid unreachable
    unsuccessful unverified vencida vencido verlopen verspätet vertraagd void voided withheld wygasło wyprzedane
    zawieszone zawieszony zurückgewiesen échec échouée überfällig エラー キャンセル 不承認 中止 停止 却下 取消 失敗 失败 已停用 已取消 已拒绝
    已驳回 延误 异常 拒绝 未通过 欠航 缺货 遅延 驳回
    """.split()
)
PENDING: Final = frozenset(
    """
    aanvraag agendado aguardando analise andamento análise approvare attente attesa ausstehend awaiting
    parziale parcial partiel partielle teilweise gedeeltelijk częściowo częściowe 部分 一部
    backordered cola coda kolejka kolejce wachtrij beantragt bearbeitung behandeling borrador bozza brouillon concept corso cours created curso
    draft eingegangen entwurf espera fila gepland geplant geprüft held hold in_review incomplete ingediend
    initiated investigating lavorazione new nowe oczekuje oczekująca oczekujące offen open openstaand partial
    pendente pendiente pending planifie planifié preparacion preparación preparando preparing proceso
    processamento processing programado progress provisional prüfung queued received registered registrado
    requested review revision revisione revisión scheduled sospeso soumis soumise submitted szkic tentative toku
    trakcie tramitación unapproved unconfirmed validation valider verifica verifying vorgemerkt wachtend waiting
    waitlist waitlisted wartend warteschlange weryfikacja weryfikacji 下書き 保留 保留中 処理中 处理中 审批中 审核中 待ち 審査中 待付款 待处理 待审批
    待审核 待确认 排队中 整理中 未処理 未完了 未完成 検討中 準備中 申請中 確認中 草稿 进行中
    """.split()
)
FAILED_STEMS: Final = (
    "refus", "rejet", "reject", "denied", "deny", "declin", "desestim", "rechaz", "deneg", "inadmi", "recus", "indefer", "negad", "negat",
    "rifiut", "respint", "afgewez", "geweig", "odrzuc", "odmow", "abgelehn", "ablehn", "verweig", "zurückgew", "fail", "fehlg", "gescheit",
    "échou", "échec", "echec", "echou", "mislukt", "fallid", "falh", "nieud", "niepow", "cancel", "annul", "storn", "geannul", "anul",
    "abort", "abgebroch", "expir", "caduc", "scadut", "verlop", "wygas", "revok", "widerruf", "return_", "bounce", "suspend", "unsuccess",
)  # fmt: skip
"""How words of states begin in which a thing did not come about, in state keys."""
PENDING_STEMS: Final = (
    "await", "pending", "needs", "requir", "queue", "review", "on_hold", "waiting", "moderat", "in_progress", "progress", "signoff",
    "pendient", "pendente", "espera", "revis", "tramit", "aguard", "analis", "andament", "ausst", "wart", "bearbeitung", "prüf", "pruef",
    "attente", "cours", "instruction", "examen", "attesa", "corso", "lavoraz", "verifica", "wacht", "behandel", "beoordel", "oczek",
    "trakcie", "weryf", "rozpatr", "待", "审核中", "处理中", "複核", "中", "未",
)  # fmt: skip
"""How words of states begin in which a thing is still to come about, in state keys."""
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
MORE_KEYS: Final = frozenset(
    """
    has_more has_next has_next_page hasmore hasnextpage is_truncated istruncated more next next_cursor next_token nextcursor nextpagetoken next_page next_page_token nexttoken truncated
    """.split()
)
TOTAL_KEYS: Final = frozenset(
    """
    anzahl count gesamt matches_total total total_count total_items total_results totalcount totale razem łącznie totaal
    合計件数 総件数 全件数 合計 総数 总数 总条数 总计
    """.split()
)
VISIBILITY_KEYS: Final = frozenset(
    "visibility audience confidentiality sichtbarkeit visibilité visibilidad visibilidade visibilità zichtbaarheid widoczność 公開範囲 可见性".split()
)
"""Words of keys that say who may be told of a member."""
REASON_KEYS: Final = frozenset(
    """
    reason error message cause why detail grund fehler hinweis motif raison erreur motivo razón razon causa erro errore ragione reden fout
    oorzaak powód powod błąd 理由 原因 错误
    """.split()
)
"""Words of keys that say why something was not done."""
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
    reisepass salaire salario salaris salary ssn steuernummer stipendio sueldo curp nir sozialversicherungsnummer medical
    """.split()
)
PERSONAL_ENDS: Final = frozenset(
    tuple(name.split("_"))
    for name in """
    passport_no passport_number id_number medical_notes codice_fiscale home_address private_address indirizzo_privato domicilio_particular date_of_birth of_birth national_id
    tax_id social_security steuer_id adresse_privée adresse_privee private_anschrift data_nascimento fecha_nacimiento
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
LASTING: Final = frozenset(
    """
    duration elapsed eta latency length runtime time timeout took ttl uptime wait
    dauer durée duree duración duracion durata duração duracao duur czas hours stunden heures horas ore uren 時間 时长
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
GOOD_STATES: Final = frozenset(
    """
    accepted active approved arrived available booked closed complete completed confirmed delivered done enabled finished
    fixed fulfilled granted healthy live merged ok online operational paid passed passing processed published ready
    refunded resolved running sent settled shipped succeeded success successful up valid verified
    abgeschlossen aktiv bestätigt bezahlt erledigt genehmigt geliefert versandt zugestellt actif active confirmé livré
    payé payée terminé validé approuvé expédié activo aprobado aprobada completado confirmado confirmada entregado enviado
    pagado pagada resuelto ativo aprovado aprovada concluído concluido confirmado entregue pago paga attivo approvato
    completato confermato consegnato pagato spedito risolto actief afgerond betaald bevestigd geleverd goedgekeurd
    aktywny aktywne dostarczono opłacone potwierdzone zakończone zatwierdzone
    完了 確定 承認済 配達完了 成功 已完成 成功 已通过 已确认 已支付 已签收
    """.split()
)
"""Words of states in which a thing is done or well."""
DRY_STEMS: Final = (
    "dryrun", "would", "simul", "symul", "preview", "whatif", "checkmode", "planonly", "testlauf", "probelauf", "vorschau", "anteprima",
    "apercu", "vistaprevia", "previa", "previsualiz", "proef", "voorvertoning", "podglad", "probny", "testmode", "プレビュー", "预览",
)  # fmt: skip
"""How keys begin that tell what would come about, and modes in which nothing does."""
DO_WORDS: Final = frozenset(
    """
    apply applied execute executed commit committed confirm ausführen ausgefuehrt esegui eseguito eseguire ejecutar ejecutado exécuter
    executer exécuté executar executado uitvoeren uitgevoerd wykonaj wykonano 実行 执行
    """.split()
)
"""Words of flags that have to be set before anything is done."""
MODE_KEYS: Final = frozenset("mode action phase modo modus tryb modalità".split())
DRY_MODES: Final = frozenset("plan check noop test".split())
DRY_TEXTS: Final = (
    "confirm=true", "apply=true", "force=true", "execute=true", "rerun with", "call again with", "run again with",
    "dry run", "dry-run", "--dry-run", "dryrun", "would be ", "would remove", "would create", "would delete", "would update", "would install", "would have",
    "nothing has been", "nothing was ", "no changes were", "no changes have", "not been applied", "[plan]", "preview only", "simulation only", "simulated",
    "testlauf", "probelauf", "würde ", "es wurde nichts", "simulation", "à blanc", "rien n'a été", "simulacro", "simulación", "no se ha aplicado", "no se aplicó",
    "simulação", "nada foi", "simulazione", "nessuna modifica", "proefdraai", "niets gewijzigd", "próbn", "symulacj", "nic nie zmieniono",
    "ドライラン", "シミュレーション", "変更は行われ", "试运行", "模拟", "未做任何", "未执行",
)  # fmt: skip
"""What says in arguments and results that nothing was done yet."""
OPPOSITES: Final = tuple(
    tuple(pair.split("/"))
    for pair in """
    open/closed locked/unlocked online/offline enabled/disabled on/off available/unavailable approved/rejected
    locked/open valid/expired paid/unpaid active/inactive public/private allowed/forbidden
    allowed/prohibited accepted/declined passed/failed verified/unverified included/excluded optional/mandatory
    offen/geschlossen zu/offen ouvert/fermé abierto/cerrado abierta/cerrada aberto/fechado aberta/fechada aperto/chiuso
    aperta/chiusa otwarte/zamknięte otwarty/zamknięty eingeschaltet/ausgeschaltet verriegelt/entriegelt
    ingeschakeld/uitgeschakeld allumé/éteint allumée/éteinte activé/désactivé verrouillé/déverrouillé
    encendido/apagado encendida/apagada activado/desactivado acceso/spento accesa/spenta ligado/desligado
    ligada/desligada włączony/wyłączony włączona/wyłączona włączone/wyłączone
    """.split()
)
"""States of which a thing has one."""
ACTION_VERBS: Final = (
    "send", "buy", "purchas", "create", "delete", "update", "book", "pay", "transfer", "cancel", "add", "post", "write", "move", "set",
    "schedul", "email", "notify", "submit", "remove", "publish", "upload", "deploy", "order", "reserv", "refund", "stuur",
    "env", "crea", "supprim", "elimin", "inv", "buch", "sende", "restart", "enabl", "disabl", "print", "rotat", "scale", "merg", "approv", "invit", "enrol",
    "close", "assign", "renew", "start", "stop", "unlock", "pause", "resum", "reset", "purge", "clean", "import", "sync", "grant", "confirm", "finaliz", "regist",
    "insert", "append", "schlie", "ferme", "cerrar", "fechar", "chiud", "sluit", "zamkn", "subscrib", "patch", "revok", "modif", "renam", "archiv", "prenot", "rimbors", "reembols", "rembours", "annul", "réserv",
    "reprogram", "zarezerw", "anuluj", "lösch", "wyslij", "dodaj", "boek", "verwijder", "ajout", "aggiorn", "aktualis", "actualiz", "atualiz",
    "aktualiz", "änder", "aender", "wijzig", "bijwerk", "zmien", "zmień", "aggiung", "añad", "agreg",
)  # fmt: skip
"""How the names of tools begin that do something."""
NEGATING_PREFIXES: Final = (
    "dé",
    "des",
    "dis",
    "in",
    "un",
    "non",
    "im",
    "nie",
    "ir",
    "il",
    "scon",
    "sconsig",
    "on",
    "mis",
)
VAGUE_STATES: Final = frozenset(
    "open new up down ok error late low partial test other sent active created received review registered submitted "
    "scheduled queued draft processing preparing hold running closed planned returned".split()
)
"""Words that are states under the key of a state alone, or that a sound answer need not repeat."""
FAILED_LISTS: Final = frozenset(
    "failed failures failure skipped rejected errors not_found missing unmatched conflicts omitted unsent undelivered bounced "
    "fehlgeschlagen fehler übersprungen échecs echecs ignorés rejetés fallidos errores omitidos rechazados falhas erros ignorados "
    "falliti errori saltati mislukt fouten overgeslagen nieudane błędy pominięte 失敗 失败 跳过 エラー".split()
)
"""Keys of what failed of a whole."""
FIRST_PAGE: Final = (
    "first page", "at least", "so far", "page", "premiers", "primeros", "primeiros", "primi ", "ersten", "eerste ", "pierwsz", "最初", "最近", "mindestens", "au moins", "al menos",
    "pelo menos", "almeno", "minstens", "co najmniej", "seite", "pagin", "página", "stron", "頁", "页",
)  # fmt: skip
"""What says that there may be more than is told."""
FUTURE: Final = re.compile(r"\b(?:will|plans?|until|wird|werden|sera|será|sarà|zal|będzie)\b")
"""Words for what comes, which also tell of what was brought about; conditionals are none."""
FIRST_OF: Final = re.compile(r"(?<![目当當以之午日月年])前(?![往後后])")
"""The same as one sign, `前5件`, which also stands in words for what is now or was before."""
OF_SOME: Final = (
    "first", "latest", "recent", "top", "erste", "neuest", "letzte", "premi", "derni", "récent", "primer", "últim", "recient", "prim", "recent", "ultim", "eerste",
    "laatste", "nieuwste", "pierwsz", "ostatni", "najnowsz",
)  # fmt: skip
"""What says, right beside a count, that it is of some."""
WEEK_KEYS: Final = frozenset(
    "kw week woche isoweek kalenderwoche semaine semana settimana tydzień tydzien 週 周".split()
)
"""Keys whose number is a week of the year."""
BOTH: Final = frozenset(
    "both beide beiden beides ambos ambas entrambi entrambe deux oba obie obydwa obydwie two twee zwei dos dois duas due dwa dwie どちらも 両方 两者 两个都 两家都".split()
)
PERSON_KEYS: Final = frozenset(
    "owner patient customer employee guest tenant applicant student member client resident besitzer patient kunde mieter gast "
    "propriétaire locataire client dueño paciente cliente inquilino huésped proprietario inquilino ospite eigenaar huurder klant "
    "właściciel pacjent klient najemca 患者 顧客 会員 客户 患者 业主".split()
)
"""Keys that name a person of whom a row is."""
CANCELLED: Final = (
    "cancel", "annul", "storn", "anulow", "anulad", "geannul", "odwoł", "abgesagt", "gekündigt", "widerruf", "revoked", "void", "キャンセル", "取消", "取り消",
)  # fmt: skip
"""What says in some language that a thing is off, in a state as in an answer."""
MOMENT_ENDS: Final = frozenset(
    "at am on date datum date_time time le el il op dnia fecha data 日 时间 時間 日時".split()
)
"""How keys of moments end."""
GOOD_STEMS: Final = (
    "enrol", "inklus", "cover", "possib", "posib", "possív", "allow", "permit", "eligib", "approv", "activ", "enabl", "includ", "inclus", "avail",
    "dispon", "verfüg", "confirm", "refund", "success", "erlaub", "möglich", "genehm", "authori", "permes", "ammess", "dostęp", "możliw",
    "beschikb", "mogelijk", "toegest", "inscri", "registr", "register", "settled", "verif", "bearbeit", "process",
)  # fmt: skip
"""How words of keys begin that say that something is done or holds."""
NEGATING_WORDS: Final = frozenset("not non nicht no não niet nie un 未".split())
"""First words of keys that count what did not come about."""
ASKS_SECRET: Final = frozenset(
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
SAYS_MORE: Final = (
    "more", "other", "mehr", "weiter", "autre", "más", "otr", "mais", "outr", "altr", "meer", "ander", "więcej", "inn", "さらに", "他に", "更多", "其余", "还有",
)  # fmt: skip
"""What says that there is something beside what is told."""
CHANGING: Final = frozenset(
    "updated modified changed checked created generated timestamp ts now version revision etag token cursor seq".split()
)
"""Words of keys whose value differs from call to call, whatever it is about."""
PRESENT: Final = frozenset(
    "this current now ce cet cette actuel actuelle dieser diese diesen aktuell este esta actual atual questo attuale deze huidig ten obecny 本 今 当前".split()
)
"""Words of keys of what is now."""
NO_VALUES: Final = frozenset("n/a na none null nil unknown - – — ? k.a. n.v.t. brak なし 無 无 暂无".split())
"""How results write that there is no value."""
PREVIOUS: Final = frozenset(
    """
    previous prev prior last before old earlier baseline vorher vorig vorige voriger vormonat vorjahr alt précédent precedent
    précédente avant anterior anteriores previo passado passada precedente scorso scorsa prima vorige eerder poprzedni poprzednie
    poprzednia wcześniej 前 前回 前月 先月 昨年 上月 上期 去年 之前
    """.split()
)
"""Words of keys of what was before."""
PERIODS: Final = frozenset(
    """
    year month week quarter period semester term day jahr monat woche quartal zeitraum année annee mois semaine trimestre période
    periode año ano mes semana bimestre semestre período periodo anno mese settimana jaar maand kwartaal rok miesiąc miesiac tydzień
    kwartał kwartal okres 年 月 週 周 期 季度 月份
    """.split()
)
"""Words of keys that number a time, such as a month or a term."""
FROM: Final = tuple(
    mark + end
    for mark in (
        " from",
        " von",
        " vom",
        " de",
        " desde",
        " da",
        " dal",
        " z",
        " ze",
        " van",
        " du",
        " od",
        "从",
        "由",
    )
    for end in (" ", " $", " €", " £", " r$ ", "")
    if end or not mark.isascii()
)
"""What stands before the value from which something changed."""
PAGES_KEYS: Final = frozenset(
    "stron pages total_pages totalpages page_count pagecount num_pages last_page seiten pagine páginas paginas strony pagina_s 页数 総ページ".split()
)
"""Keys of how many pages there are."""
VALUE_KEYS: Final = frozenset(
    "value val result wert valeur valor valore waarde wartość 値 值 next cursor error".split()
)
"""Words of keys that say nothing of what their value is about."""
IN_SYSTEM: Final = (
    "in the system", "on record", "on file", "in the record", "im system", "nicht hervor", "finde ich leider nur", "dans le système", "au dossier",
    "en el sistema", "no sistema", "nel sistema", "in het systeem", "w systemie", "登録され", "システム上", "系统里", "系统中", "没有查到", "未查到",
)  # fmt: skip
"""Where people say that something is not."""
WHEN: Final = frozenset("date time at ts timestamp t when datum fecha data datetime zeit hora".split())
"""Words of keys that tell when something happened, as logs have them."""
EXCEPTIONS: Final = (
    " without ", " unless ", " except ", " ohne ", "außer ", "es sei denn", " sofern ", " sans ", " sauf ", "à moins que", " hormis ", " sin ",
    " salvo ", " excepto ", "a menos que", " sem ", " exceto ", "a não ser", " senza ", " tranne ", " eccetto ", "a meno che", " zonder ",
    " tenzij ", " behalve ", " bez ", " chyba ", " oprócz ", " z wyjątkiem", "除き", "除く", "除いて", "以外", "除非", "除外", "除了",
)  # fmt: skip
"""What makes an exception from a prohibition, or turns it round: not without a permit."""
OPEN_FLAGS: Final = frozenset(
    "required needed mandatory obligatory free paid only extra separate exempt verpflichtend requis obligatorio".split()
)
"""Words of flags that say less than whether a thing is there or allowed."""
FORBIDDEN: Final = re.compile(
    r"banned|prohibit|forbidden|unpaid|without|out of order|verboten|untersagt|unbezahlt|ohne|defekt|interdit|impayé|sans\b|prohibid|impagad|sin\b"
    r"|proibid|sem\b|vietat|senza|guasto|verboden|zonder|kapot|zabronion|zakaz|bez\b|禁止|故障"
)
"""What turns the sense of a question round."""
