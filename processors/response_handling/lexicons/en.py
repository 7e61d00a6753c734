"""English."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="en",
    function="""
    the of and to in is are was were be been it its that this these those you your we our they their there here
    have has had with for from on at by as or but so if than then what which who how when where will would can
    could should may might about into out up off over only also just still them he she his her i my me do does
    did a an go get see find tell show give please any
    all each both every entire left
    """,
    others="""
    averaged avg fall fallen falling falls fell fri friday grew growth higher loss lost lower mean means mon
    monday rise risen rises rising rose sat saturday shrank sun sunday thu thur thurs thursday tue tues
    tuesday wed wednesday
    """,
    months="january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|"
    "september sept sep|october oct|november nov|december dec",
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
    empty
    not no never none nothing neither nor without cannot can't won't isn't aren't wasn't weren't doesn't don't
    didn't hasn't haven't hadn't couldn't wouldn't shouldn't nobody nowhere hardly yet_to unable isnt cant dont
    isn\u2019t aren\u2019t wasn\u2019t doesn\u2019t don\u2019t didn\u2019t hasn\u2019t haven\u2019t can\u2019t won\u2019t couldn\u2019t wouldn\u2019t
    """,
    nothing="""
    empty
    no none nobody nothing nowhere without neither nor never there_aren't there_isn't there_aren’t
    there_isn’t doesn't_have_any don't_have_any aren't_any isn't_any not_a_single not_only
    """,
    failure="""
    time_limit
    fail* error* problem* trouble* unable sorry apolog* regret* went_wrong denied deny unavailable
    unreachable unresponsive offline timeout timed time_out invalid unsuccess* impossible unauthori*
    forbidden permission* overload* try_again retried glitch* couldn't can't cannot revoked aborted
    abort* no_answer no_response no_reply no_access no_luck no_connection wasn't_able weren't_able busy
    jammed stuck not_able didn't_respond didn’t_respond not_respond* not_responding is_down was_down
    are_down were_down currently_down under_maintenance for_maintenance crashed retry
    fully_booked sold_out locked issue issues unfortunately declin* reject* refus* block* outage maintenance expired insufficient crash*
    missing incomplete damaged partial* broken roll* skipped bounced suspend* unread* unresolved overdue
    unpaid degraded lapse* down late behind slipped delay* postpon*
    """,
    done="""
    promoted granted verified accepted rotated locked purged wired printed synced imported exported released launched linked upgraded extended corrected adjusted migrated_to
    done completed complete finished deleted created sent paid booked cancelled canceled updated delivered
    shipped saved added removed confirmed approved processed transferred uploaded submitted scheduled deployed
    restored refunded activated merged published resolved succeeded successful successfully passed received
    set_up all_set renamed moved changed ordered reserved issued charged closed green arrived archived renewed
    gone_through went_through taken_care done_and live running online active working ready enabled installed
    registered enrolled unlocked opened placed posted subscribed unsubscribed turned_on turned_off switched
    reset applied cleaned cleared migrated rebooted restarted signed filed paid_out settled on_the_way
    on_its_way succeeds passing passes healthy cashed credited rescheduled rebooked invited assigned dispatched
    faxed emailed mailed texted fixed replaced in_place went_out is_out sorted
    """,
    yes="yes yep yup yeah sure absolutely certainly definitely indeed correct of_course no_problem that_works that's_fine that’s_fine",
    no="no nope",
    approx="""
    about around approximately approx roughly nearly almost over under some circa just above below more less up
    least most close estimated
    """,
    relative="today tonight tomorrow yesterday now next coming upcoming weekend ago later last previous",
    harmless="""
    in_all at_all after_all no_further no_additional nothing_else nothing_more nothing_to_worry no_problem no_need no_worries not_need
    don't_need don't_worry don't_forget don't_hesitate don’t_hesitate don’t_need don’t_worry don’t_forget
    can't_wait no_extra no_cost no_charge no_fee no_errors no_issues no_problems no_trouble without_problems
    without_any without_issue without_error without_a_hitch without_locking if_not if_you if_anything not_only
    hasn't_changed no_delay no_delays up_and_running down_to down_for cool_down left_over i_can't_wait
    no_later_than no_more_than no_less_than not_just let_me_know would_you_like put_you_down write_down if_there
    never_mind any_questions any_problems
    wasn't_touched weren't_touched wasn’t_touched weren’t_touched not_touched not_affected
    """,
    absent="""
    couldn't_find can't_find cannot_find could_not_find couldn’t_find can’t_find no_record not_found
    information
    anything_about anything_on nothing_about no_information any_information find_information no_info any_info no_details any_details no_data no_mention
    any_mention doesn't_say doesn’t_say does_not_say doesn't_mention doesn’t_mention does_not_mention
    not_mentioned not_listed not_specified doesn't_specify doesn’t_specify isn't_listed isn’t_listed not_stated
    isn't_clear not_given no_indication any_indication doesn't_list doesn’t_list doesn't_show doesn’t_show
    no_word_on information_about information_on
    """,
    total="total* sum sums summing altogether in_all combined adds_up add_up come_to comes_to came_to overall together grand_total",
)
