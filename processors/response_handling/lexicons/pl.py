"""Polish."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="pl",
    function="""
    i w z na do nie się jest są był była było były to ten ta te że ale lub oraz o od po za przez dla przy pod nad
    bez jak co kto który która które kiedy gdzie czy ile już jeszcze też także tylko tak ma mam masz mają pan pani
    jego jej ich mój twój nasz ze we u jako by będzie został została zostało zostały można go mi ci
    wszystkie wszystkich wszystko wszyscy każdy każda każde oba obie obydwa całość cały całkowicie
    """,
    others="""
    czw czwartek maleje niedz niedziela niedzielę piątek pon poniedziałek rośnie sob sobota sobotę spadek
    wtorek wzrost wzrósł środa środę
    """,
    months="stycznia styczeń sty|lutego luty lut|marca marzec mar|kwietnia kwiecień kwi|maja maj|"
    "czerwca czerwiec cze|lipca lipiec lip|sierpnia sierpień sie|września wrzesień wrz|"
    "października październik paź|listopada listopad lis|grudnia grudzień gru",
    numbers="""
    zero=0 dwa=2 dwie=2 dwóch=2 trzy=3 trzech=3 cztery=4 czterech=4 pięć=5 pięciu=5 sześć=6 sześciu=6 siedem=7
    siedmiu=7 osiem=8 ośmiu=8 dziewięć=9 dziesięć=10 jedenaście=11 dwanaście=12 trzynaście=13 czternaście=14
    piętnaście=15 szesnaście=16 siedemnaście=17 osiemnaście=18 dziewiętnaście=19 dwadzieścia=20 trzydzieści=30
    czterdzieści=40 pięćdziesiąt=50 sześćdziesiąt=60 siedemdziesiąt=70 osiemdziesiąt=80 dziewięćdziesiąt=90 tuzin=12
    dwaj=2 dwoje=2 dwojga=2 dwoma=2 dwiema=2 trzej=3 troje=3 trojga=3 trzema=3 czterej=4 czworo=4 czworga=4
    czterema=4 pięcioro=5 pięciorga=5 pięcioma=5 sześcioro=6 sześciorga=6 siedmioro=7 siedmiorga=7 ośmioro=8
    ośmiorga=8 dziewięciu=9 dziewięcioro=9 dziesięciu=10 dziesięcioro=10 jedenastu=11 dwunastu=12 trzynastu=13
    czternastu=14 piętnastu=15 dwudziestu=20
    """,
    scales="tys=3 tysiąc=3 tysiące=3 tysięcy=3 mln=6 milion=6 miliony=6 milionów=6 mld=9 miliard=9 miliardów=9",
    units="""
    ms: milisekunda milisekund; s: sekunda sekundy sekund sek; min: minuta minuty minut minutę minutach;
    h: godzina godziny godzin godz godzinę godzinach; d: dzień dni dnia dniach doba doby dób noc noce nocy; wk: tydzień tygodnie tygodni tygodniach;
    mo: miesiąc miesiące miesięcy miesiącach; y: rok lata lat roku; %: procent procenta; m: metr metry metrów;
    cm: centymetr centymetry centymetrów; km: kilometr kilometry kilometrów; mi: mila mile mil; g: gram gramy gramów;
    kg: kilo kilogram kilogramy kilogramów; t: tona tony ton; l: litr litry litrów; deg: stopień stopnie stopni;
    C: celsjusza
    """,
    negation="pusty pusta puste nie nigdy nic nikt żaden żadna żadnego żadnych żadne bez ani brak",
    nothing="""
    pusty pusta puste
    nie_ma nigdy nic nikt żaden żadna żadnego żadnych żadne brak nie,
    """,
    failure="""
    błąd błęd* niepowodz* problem* przepraszam* odmow* niedostępn* ponown* nie_udało nieudan* nie_mogę
    nie_mogłem nie_mogłam nie_odpowiada* nie_odpowiedzia* brak_odpowiedzi brak_dostępu brak_połączenia
    spróbuj* przeciążon*
    niestety odrzuc* zablok* wygas* nieważn* niewystarcz* przerwan* niepełn* częściow* uszkodz*
    przekrocz* awaria pominięt* wycofan* zawieszon* opóźni* nieopłacon* brakuj* wstrzyman* nieprzyjęt*
    zablokowan*
    """,
    done="""
    wydan* przyjęt* przedłużon*
    zrobione gotowe gotowy zakończon* ukończon* usunięt* utworzon* wysłan* zapłacon* opłacon* zarezerwowan*
    anulowan* zaktualizowan* dostarczon* zapisan* dodan* potwierdzon* zatwierdzon* przelan* zwrócon* aktywowan*
    pomyślnie otrzyman* wykonan* zmienion* doręczon* aktywn* działa* uruchomion* opublikowan* zainstalowan*
    zastosowan* zaakceptowan* zaksięgowan* wpłacon* rozwiązan* otwart* zamknięt* załatwion* wystawion* przyznan*
    zaproszon* włączon* wyłączon* poprawion* przeniesion* zarejestrowan* wdrożon* wyczyszczon* nadan* udan*
    udało odebran* umówion* przełożon*
    """,
    yes="tak oczywiście owszem jasne pewnie zgadza_się",
    no="nie",
    approx="około ok niemal prawie blisko ponad niecałe mniej więcej jakieś z_grubsza najmniej poniżej powyżej",
    relative="dziś dzisiaj jutro wczoraj teraz następn* pojutrze przedwczoraj zeszł* ostatni* przyszł*",
    harmless="""
    nie_ma_problemu nic_więcej nie_trzeba nie_musisz nie_musi bez_problem* bez_dopłat* bez_opłat nie_zapomnij
    jeśli_nie nie_tylko bez_błędów bez_dodatkowych proszę_się_nie
    nie_ruszałem nie_ruszałam nie_zostały_zmienione bez_zmian
    """,
    absent="""
    nie_znajduj* nie_znalaz* nie_mogę_znaleźć
    informacji informacje
    nic_o brak_informacji brak_danych nie_ma_informacji nie_podano nie_wspomin* nie_określ* nie_ma_danych
    żadnych_informacji informacji_o informacji_na
    """,
    total="razem łącznie łączn* suma sumie sumę ogółem",
)
