"""Dutch."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="nl",
    function="""
    de het een en of maar is zijn was waren wordt worden werd heeft hebben had er hij zij ze we wij je jij jouw u
    uw ik mijn ons onze hun dit dat deze die wat wie welke hoe hoeveel wanneer waar met van voor op in aan uit bij
    naar over onder om als dan ook nog al alleen niet geen te tot tegen door om zo kan kunt moet moeten zal zou
    daar hier dus staat
    alle allemaal alles elke elk ieder iedere beide volledig compleet helemaal hele
    """,
    others="""
    afgenomen afname daalde daalt daling dinsdag donderdag gedaald gegroeid gekrompen gemiddelde gestegen
    groei groter hoger kleiner korter lager langer maandag steeg stijging stijgt toegenomen toename vrijdag
    woensdag zaterdag zondag
    """,
    months="januari jan|februari feb|maart mrt|april apr|mei|juni jun|juli jul|augustus aug|september sept sep|"
    "oktober okt|november nov|december dec",
    numbers="""
    nul=0 twee=2 drie=3 vier=4 vijf=5 zes=6 zeven=7 acht=8 negen=9 tien=10 elf=11 twaalf=12 dertien=13
    veertien=14 vijftien=15 zestien=16 zeventien=17 achttien=18 negentien=19 twintig=20 dertig=30 veertig=40
    vijftig=50 zestig=60 zeventig=70 tachtig=80 negentig=90 dozijn=12
    """,
    scales="duizend=3 miljoen=6 mln=6 miljard=9 mld=9",
    units="""
    ms: milliseconde milliseconden; s: seconde seconden; min: minuut minuten; h: uur uren u;
    d: dag dagen nacht nachten; wk: week weken; mo: maand maanden; y: jaar jaren; %: procent;
    mm: millimeter; cm: centimeter; m: meter; km: kilometer; mi: mijl mijlen; g: gram; kg: kilo kilogram;
    t: ton; l: liter; deg: graad graden; C: celsius
    """,
    negation="leeg lege niet niets geen nooit zonder noch niemand nergens helaas",
    nothing="""
    leeg lege
    geen niets niemand nergens zonder noch nooit nee
    """,
    failure="""
    fout* mislukt* probleem problemen sorry lukt* storing onbereikbaar onderbroken onmogelijk opnieuw
    excuses kon_niet konden_niet niet_gelukt niet_bereikbaar geen_antwoord geen_reactie geen_toegang
    geen_verbinding reageert_niet het_later later_nog overbelast lukte_niet vastgelopen
    volgeboekt helaas geweiger* afgewezen geblokkeerd verlopen ongeldig* onvolledig* gedeeltelijk beschadigd
    overschreden kapot overgeslagen teruggedraaid opgeschort vertraagd vertraging onbetaald ontbreekt
    ontbreken vervallen uitgevallen afgebroken afgekeurd
    """,
    done="""
    verleend toegekend verlengd
    gedaan klaar voltooid afgerond verwijderd aangemaakt gemaakt verzonden verstuurd betaald geboekt geannuleerd
    bijgewerkt bezorgd geleverd opgeslagen toegevoegd bevestigd goedgekeurd overgemaakt geactiveerd gelukt
    succesvol ontvangen gewijzigd gereserveerd uitgevoerd ingepland actief live online draait werkt gereed
    in_orde geregeld gepubliceerd geïnstalleerd toegepast geaccepteerd bijgeschreven gestort opgelost geopend
    gesloten uitgenodigd herstart ingeschakeld uitgeschakeld verplaatst omgeboekt ingeschreven aangemeld
    afgemeld uitgegeven voldaan terugbetaald doorgevoerd uitgerold opgeruimd
    """,
    yes="ja jazeker zeker inderdaad klopt natuurlijk uiteraard absoluut geen_probleem dat_kan",
    no="nee",
    approx="ongeveer circa ca zo'n bijna rond ruim krap meer minder nog_geen omstreeks zowat minstens maximaal",
    relative="vandaag morgen gisteren nu volgende komende overmorgen eergisteren vorige afgelopen",
    harmless="""
    geen_probleem geen_zorgen niets_meer niet_nodig hoef_je_niet hoeft_niet hoeft_u zonder_problemen
    zonder_extra geen_kosten niet_vergeten vergeet_niet als_je als_u zo_niet niet_alleen geen_fouten
    niet_aangeraakt niet_geraakt
    """,
    absent="""
    niet_vinden niets_gevonden vind_geen
    informatie
    niets_over geen_informatie geen_gegevens niet_vermeld niet_bekend geen_vermelding niet_aangegeven geen_info
    informatie_over
    """,
    total="totaal totale samen opgeteld som bedraagt",
)
