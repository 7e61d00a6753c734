"""English."""

from typing import Final

from processors.response_handling.lexicon import Words

WORDS: Final = Words(
    language="en",
    function="""
    the of and to in is are was were be been it its that this these those you your we our they their there here
    have has had with for from on at by as or but so if than then what which who how when where will would can
    could should may might about into out up off over only also just still them he she his her i my me do does
    did a an
    """,
    months="january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|"
    "september sept sep|october oct|november nov|december dec",
    weekdays="monday mon|tuesday tue tues|wednesday wed|thursday thu thur thurs|friday fri|saturday sat|"
    "sunday sun",
    numbers="""
    zero=0 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 thirteen=13
    fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20 thirty=30 forty=40
    fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 dozen=12
    """,
    scales="thousand=3 k=3 million=6 millions=6 mn=6 mio=6 billion=9 billions=9 bn=9 trillion=12 lakh=5 crore=7",
    units="""
    ms: millisecond milliseconds msec; s: second seconds sec secs; min: minute minutes mins; h: hour hours hr hrs;
    d: day days night nights; wk: week weeks; mo: month months; y: year years yr yrs; %: percent percentage;
    mm: millimeter millimeters millimetre millimetres; cm: centimeter centimeters centimetre centimetres;
    m: meter meters metre metres; km: kilometer kilometers kilometre kilometres; mi: mile miles; ft: foot feet;
    in: inch inches; yd: yard yards; g: gram grams gramme grammes; kg: kilo kilos kilogram kilograms;
    lb: pound pounds lbs; oz: ounce ounces; t: ton tons tonne tonnes; l: liter liters litre litres;
    gal: gallon gallons; deg: degree degrees; C: celsius centigrade; F: fahrenheit; B: byte bytes;
    kB: kilobyte kilobytes; MB: megabyte megabytes; GB: gigabyte gigabytes gigs; TB: terabyte terabytes
    """,
    negation="""
    not no never none nothing neither nor without cannot can't won't isn't aren't wasn't weren't doesn't don't
    didn't hasn't haven't hadn't couldn't wouldn't shouldn't nobody nowhere hardly yet_to unable isnt cant dont
    isn\u2019t aren\u2019t wasn\u2019t doesn\u2019t don\u2019t didn\u2019t hasn\u2019t haven\u2019t can\u2019t won\u2019t couldn\u2019t wouldn\u2019t
    """,
    failure="""
    fail* error* problem* trouble* issue* unable sorry apolog* unfortunately regret* went_wrong denied deny
    declin* reject* refus* block* unavailable unreachable unresponsive down offline outage maintenance timeout
    timed time_out invalid expired insufficient exceed* locked crash* however but although missing incomplete
    unsuccess* impossible unauthori* forbidden permission* overload* busy try_again retry retried glitch*
    couldn't can't cannot wasn't stuck short damaged partial* except quota limit conflict*  warning*
    wrong broken  unknown
    """,
    pending="""
    pending process* await* waiting queue* schedul* progress review* submitted draft* expect*
    will would later provisional* tentativ* in_transit on_its_way estimate* dry simulat* preview*
    not_yet_been initiated request* hold requires
    """,
    done="""
    done completed complete finished deleted created sent paid booked cancelled canceled updated delivered shipped
    saved added removed confirmed approved processed transferred uploaded submitted scheduled deployed restored
    refunded activated merged published resolved succeeded successful successfully passed received set_up all_set
    renamed moved changed ordered reserved issued charged closed green arrived archived renewed
    """,
    all="all every each both everything entire everyone whole fully complete completely any",
    yes="yes yep yeah sure absolutely certainly indeed correct",
    no="no nope",
    up="""
    rose rise rises risen rising increas* grew grow* growth climb* jump* surg* soar* higher up gain* improv* more
    """,
    down="fell fall falls fallen falling decreas* declin* drop* down lower shrank shrink* loss lost reduc* dip* less",
    approx="""
    about around approximately approx roughly nearly almost over under some circa just above below more less up
    least most close estimated
    """,
    relative="today tonight tomorrow yesterday now next coming upcoming weekend ago later last previous",
    secret="password passcode secret token key credential* pin code ssn social",
)
