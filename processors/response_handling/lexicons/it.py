"""Italian."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="it",
    function="""
    sì può posso puoi
    il lo la i gli le l un uno una di del dello della dei degli delle d e ed o ma è sono era erano ha hanno c'è ci
    si no che chi cosa quale quanto quanti quando dove come in nel nella nei nelle nello con senza per da dal dalla
    dai a al alla ai alle allo su sul sulla non più molto anche già ancora questo questa questi quello quella suo
    sua suoi mio tuo tua vi mi ti ne se stato stata sarà fino tra fra perché
    tutti tutte tutto tutta ogni entrambi entrambe completo completa completamente intero ciascuno
    """,
    others="""
    cala calo dom domenica gio giovedì lun lunedì mar martedì media mediamente medie medio mer mercoledì
    perso rialzo sab sabato sale salgono salire ven venerdì
    """,
    months="gennaio gen|febbraio feb|marzo mar|aprile apr|maggio mag|giugno giu|luglio lug|agosto ago|"
    "settembre set sett|ottobre ott|novembre nov|dicembre dic",
    numbers="""
    zero=0 due=2 tre=3 quattro=4 cinque=5 sei=6 sette=7 otto=8 nove=9 dieci=10 undici=11 dodici=12 tredici=13
    quattordici=14 quindici=15 sedici=16 diciassette=17 diciotto=18 diciannove=19 venti=20 trenta=30 quaranta=40
    cinquanta=50 sessanta=60 settanta=70 ottanta=80 novanta=90 dozzina=12
    """,
    scales="mila=3 mille=3 milione=6 milioni=6 mln=6 miliardo=9 miliardi=9 mld=9",
    units="""
    ms: millisecondo millisecondi; s: secondo_ secondi; min: minuto minuti; h: ora ore;
    d: giorno giorni notte notti gg; wk: settimana settimane; mo: mese mesi; y: anno anni; %: per_cento percento;
    mm: millimetro millimetri; cm: centimetro centimetri; m: metro metri; km: chilometro chilometri;
    mi: miglio miglia; g: grammo grammi; hg: etto etti; kg: chilo chili chilogrammo chilogrammi;
    t: tonnellata tonnellate; l: litro litri; deg: grado gradi; C: celsius
    """,
    negation="vuoto vuota vuoti vuote non no né mai nessun nessuno nessuna niente nulla senza neanche nemmeno",
    nothing="""
    vuoto vuota vuoti vuote
    non_ci_sono non_c'è non_c’è non_vi_sono non_ha non_hanno non_risulta* no mai nessun nessuno
    nessuna niente nulla neanche nemmeno
    """,
    failure="""
    errore errori fallit* fallisc* problem* spiacente dispiace scus* impossibil* non_disponib*
    interrott* riprov* guasto non_riuscit* non_riesc* non_è_stato_possibile non_ho_potuto non_rispond*
    senza_risposta nessuna_risposta nessun_accesso irraggiungibil* fuori_servizio più_tardi esaurit*
    inceppat*
    pieno piena purtroppo rifiut* negat* blocc* scadut* invalid* insufficient* incomplet* parzial* danneggiat*
    superat* respint* sospes* ritard* ripristinat* saltat* mancant* manca mancano assent*
    """,
    done="""
    accordat* rinnovat*
    fatto fatta completat* terminat* eliminat* cancellat* creat* inviat* pagat* prenotat* annullat* aggiornat*
    consegnat* spedit* salvat* aggiunt* confermat* approvat* trasferit* rimborsat* attivat* successo ricevut*
    eseguit* registrat* modificat* effettuat* attiv* online funziona* pubblicat* installat* applicat* accettat*
    accreditat* versat* risolt* apert* chius* saldat* emess* concess* invitat* riavviat* acces* spent* corrett*
    spostat* andato_a_buon_fine pront* fissat* iscritt* in_funzione distribuit* rilasciat* finalizzat* pulit*
    """,
    yes="sì certo esatto certamente assolutamente naturalmente ovviamente",
    no="no",
    approx="circa quasi verso intorno approssimativamente più meno oltre poco fino appena almeno",
    relative="oggi domani ieri adesso ora prossim* scors* dopodomani ultim* seguente",
    harmless="""
    nessun_problema senza_problemi non_si_preoccupi non_preoccuparti nient'altro non_serve non_occorre
    senza_costi senza_spese non_dimenticare non_esiti non_esitare se_vuole se_vuoi se_no non_solo nessun_costo
    senza_errori
    non_è_stato_toccato non_sono_stati_toccati non_ho_toccato
    """,
    absent="""
    non_trovo non_ho_trovato non_risulta*
    informazioni informazione notizie
    nulla_su niente_su non_è_indicat* nessuna_informazione informazioni_su informazioni_sul non_ci_sono_informazioni non_specifica
    non_è_specificat* non_menziona non_indica nessun_dato
    """,
    total="totale totali somma* complessiv* insieme ammonta*",
)
