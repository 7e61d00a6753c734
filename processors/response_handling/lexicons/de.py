"""German."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="de",
    function="""
    der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren wird werden wurde
    wurden hat haben hatte sie ihr ihre ihren ihrem er es wir ich nicht kein keine mit von vom zum zur zu im in am
    an auf aus bei bis nach für über unter um als auch noch nur schon so wie was wer wann wo dass wenn dann hier
    dort bitte sich mich dir dein deine ihnen kann können soll muss
    alle allen aller alles jede jeder jedes sämtliche beide beiden ganz komplett vollständig gesamte
    """,
    others="""
    abgenommen anstieg dienstag donnerstag fiel freitag fällt gefallen gesenkt gestiegen gesunken gewachsen
    höher minus mittel mittelwert mittleren mittwoch montag montags niedriger plus rückgang samstag sank
    schnitt sinkt sonnabend sonntag steigen steigt stieg wuchs wächst zugenommen zuwachs
    """,
    months="januar jan jänner|februar feb|märz mär mrz|april apr|mai|juni jun|juli jul|august aug|"
    "september sept sep|oktober okt|november nov|dezember dez",
    numbers="""
    null=0 zwei=2 drei=3 vier=4 fünf=5 sechs=6 sieben=7 acht=8 neun=9 zehn=10 elf=11 zwölf=12 dreizehn=13
    vierzehn=14 fünfzehn=15 sechzehn=16 siebzehn=17 achtzehn=18 neunzehn=19 zwanzig=20 dreißig=30 vierzig=40
    fünfzig=50 sechzig=60 siebzig=70 achtzig=80 neunzig=90 dutzend=12
    """,
    scales="tausend=3 tsd=3 million=6 millionen=6 mio=6 mill=6 milliarde=9 milliarden=9 mrd=9",
    units="""
    ms: millisekunde millisekunden; s: sekunde sekunden sek; min: minute minuten; h: stunde stunden std;
    d: tag tage tagen nacht nächte nächten; wk: woche wochen; mo: monat monate monaten monats;
    y: jahr jahre jahren; %: prozent; mm: millimeter; cm: zentimeter; m: meter metern; km: kilometer kilometern;
    mi: meile meilen; g: gramm; kg: kilo kilogramm; t: tonne tonnen; l: liter litern; deg: grad; C: celsius;
    lb: pfund; ft: fuß
    """,
    negation="""
    leer leere
    nicht nichts kein keine keinen keinem keiner keines nie niemals ohne weder noch_nicht nirgends niemand leider
    """,
    nothing="""
    leer leere
    kein keine keinen keinem keiner keines nichts niemand nirgends ohne weder noch nie nein
    """,
    failure="""
    problem* kann_nicht gescheitert entschuldig* zeitüberschreitung unterbrochen unmöglich erneut
    klappt* nicht_möglich konnte_nicht konnten_nicht nicht_erreich* nicht_geantwortet antwortet_nicht
    keine_antwort kein_zugriff keinen_zugriff keine_verbindung überlastet unterbroch* es_später
    später_noch fehler* fehlgeschl* fehlschl*
    ausgebucht fehl* abgelehnt verweigert gesperrt ungültig abgelaufen störung unvollständig beschädigt abgebrochen
    warnung überschritten teilweise defekt zurückgerollt übersprungen verspätet ausgefallen ausfall
    abgesagt gekündigt überfällig unbezahlt unzureichend ungültig* fehlt fehlen fehlend* verspätung
    klemmt
    """,
    done="""
    bewilligt erteilt verlängert zugesagt angenommen importiert exportiert migriert
    erledigt abgeschlossen fertig gelöscht erstellt angelegt gesendet geschickt versandt verschickt bezahlt
    gebucht storniert aktualisiert geliefert zugestellt gespeichert hinzugefügt entfernt bestätigt genehmigt
    überwiesen hochgeladen übermittelt erfolgreich geändert reserviert bestellt eingetragen eingegangen
    ausgeführt aktiv aktiviert läuft laufen bereit online live in_ordnung geklappt eingerichtet freigeschaltet
    freigegeben beglichen gutgeschrieben angemeldet registriert veröffentlicht installiert ausgeliefert
    umgestellt eingespielt unterwegs umgesetzt verschoben umgebucht eingeladen gestartet geschaltet
    ausgeschaltet eingeschaltet abgemeldet aufgeladen behoben versendet erstattet zurückerstattet angewendet
    """,
    yes="ja jawohl jep natürlich selbstverständlich klar genau gewiss absolut kein_problem das_geht",
    no="nein",
    approx="""
    etwa rund ca circa ungefähr fast knapp gut über unter gegen zirka nahezu annähernd mindestens höchstens mehr weniger
    """,
    relative="heute morgen gestern übermorgen vorgestern jetzt nächste* kommende* wochenende letzte* vorige*",
    harmless="""
    kein_problem keine_sorge keine_weiteren keine_weitere nichts_weiter nichts_mehr nicht_nötig nicht_vergessen
    ohne_probleme ohne_weiteres ohne_aufpreis keine_kosten kein_aufpreis falls_nicht nicht_nur wenn_sie
    falls_sie falls_du wenn_du keine_fehler keine_probleme brauchen_nichts müssen_nichts
    nicht_angefasst nicht_berührt nicht_betroffen
    """,
    absent="""
    finde_kein* nicht_finden nichts_gefunden
    nichts_über nichts_zu keine_information* keine_angabe* keine_daten keine_hinweise nicht_angegeben nicht_bekannt nicht_hinterlegt
    nicht_aufgeführt keine_auskunft geht_nicht_hervor nicht_erwähnt informationen angaben keine_info
    """,
    total="insgesamt gesamt* summe* zusammen gesamtsumme ergibt total",
)
