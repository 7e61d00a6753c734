"""How names of people and organisations are written, and what is written so and is none.

Every pattern has a bounded length, so that a search takes time linear in the text.
"""

import re
from typing import Final

from processors.response_handling.lexicons.zones import ZONES

_UPPER: Final = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĘĚĞĮŁŃŇŐŘŚŞŠŤŮŰŹŻŽ"
_CAPITAL: Final = rf"[{_UPPER}](?![{_UPPER}])[^\W\d_]{{1,20}}(?:[-'’][^\W\d_]{{2,20}})?"
_PARTICLE: Final = r"(?:d[eiau]|del|della|dos|das|von|van|der|den|ter|la|le|el|al|bin|y|e)"
SEVERAL: Final = re.compile(
    rf"(?<![\w@/.#&'’«\"“„*-]){_CAPITAL}(?:\s{_PARTICLE}){{0,2}}(?:\s{_CAPITAL}){{1,3}}(?![\w@:&*|'’”\"»-])"
)
"""Two words and more with capitals that stand neither in quotes nor at the head of something."""
TITLED: Final = re.compile(
    r"\b(?:Mrs?|Ms|Mme|Mlle|Monsieur|Madame|Herrn?|Frau|Sra?|Srta|Señora?|Senhora?|Dott(?:oressa)?|Dhr|Mevr(?:ouw)?|Meneer"
    r"|Pani?|Panem|Panią|Drs?|Dra|Prof|Captain|Capt|Sgt|Judge"
    r"|dott(?:or|oressa)?|signora?|señora?|senhora?|monsieur|madame|doctora?|docteur|doutora?|mevrouw|meneer|panią?|pana|panem"
    rf")\b\.?(?:\s(?:Dr|Prof)\.)?\s((?:{_CAPITAL}\s?){{1,3}})"
)
"""Somebody with a title."""
CALLED: Final = re.compile(
    r"\b(?:called|named|heißt|namens|se\sllama|llamad[oa]|s['’]appelle|nommée?|se\schama|chamad[oa]|si\schiama|chiamat[oa]|heet"
    rf"|genaamd|nazywa\ssię|imieniem)\s({_CAPITAL}(?:\s{_CAPITAL}){{0,2}})(?![\w@:*'’-])"
)
"""What says that a name follows."""
GERMAN: Final = re.compile(
    rf"\b(?:von|durch|bei|heißt|namens|Firma|Kolleg(?:e|in)|Techniker(?:in)?|Leiter(?:in)?)\s({_CAPITAL}\s{_CAPITAL})(?![\w@:*-])"
)
"""Where names stand in German, which writes all nouns with capitals."""
SIGNS: Final = (
    re.compile(r"(?<![一-鿿々ァ-ヶー])([一-鿿々]{2,3}|[ァ-ヶー]{3,10})(?:さん|氏|先生)"),
    re.compile(
        r"([王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎潘杜戴夏钟汪田姜范石姚谭廖邹熊陆郝孔崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易武乔贺赖龚])"
        r"(?:先生|女士|小姐|经理|医生|老师|主任|师傅|律师|教授|工程师)"
    ),
)
"""Names before words of address in Japanese, and family names in Chinese."""
NO_NAMES: Final = frozenset(
    """
    new san santa santo saint st sainte são los las north south east west northern southern eastern western united
    estados reino nueva nuevo nova novo stati regno états royaume nouvelle port puerto porto fort mount lake river
    airport street road avenue park square station island islands republic kingdom states city ville time standard
    christmas easter eve day days week weekend year years boxing good black cyber holy ash palm friday monday
    thanksgiving memorial labor labour independence navidad pascua semana santo año natal páscoa natale pasqua
    capodanno ferragosto kerst pasen koningsdag noël pâques boże wielki nowy rok
    customer support service services help desk center centre team office department account settings terms
    conditions privacy policy google apple microsoft amazon android windows iphone whatsapp facebook instagram
    youtube linkedin twitter paypal visa mastercard excel word teams outlook chrome safari firefox linux mac github
    docker python java internet wifi web european union nations commission act code law court heathrow gatwick
    gaulle kennedy schiphol barajas fiumicino malpensa charles john wi-fi bluetooth
    dear hello good best kind regards morning afternoon evening thanks greetings estimado estimada cliente atentamente
    saludos caro cara prezado atenciosamente saluti cordiali cordialement geachte groet groeten szanowny szanowna
    norway sweden denmark finland canada australia ireland switzerland austria belgium greece turkey egypt israel
    russia ukraine hungary romania bulgaria croatia serbia slovakia slovenia czech estonia latvia lithuania america
    american british english african asian european africa asia europe antarctica arabia emirates pakistan bangladesh
    vietnam thailand malaysia indonesia philippines colombia chile peru venezuela ecuador uruguay paraguay bolivia
    norvège suède danemark finlande suisse autriche belgique grèce turquie noruega suecia suécia dinamarca finlandia
    suiza suíça austria áustria bélgica grecia grécia turquía turquia norvegia svezia danimarca svizzera belgio turchia
    noorwegen zweden denemarken zwitserland oostenrijk belgië griekenland norwegia szwecja dania szwajcaria belgia
    national federal social public general central royal agency authority ministry bureau council commission court bank
    insurance security health tax revenue customs police post postal mail embassy consulate parliament congress senate
    university institute society association foundation union human resources prime minister chief executive officer
    president director manager head product project sales marketing finance legal operations engineering quality
    machine learning artificial intelligence data business premium standard basic pro plus free trial mode menu tab
    button section step page form list file folder inbox cart checkout two-factor authentication sign log dark light
    open close save edit delete share send print search filter sort export import upload download sync backup
    type class grade level vitamin model version series edition part chapter article figure table note warning tip
    sécurité sociale carte vitale impôts préfecture mairie poste banque assurance nationale ministère conseil cour
    seguridad seguro hacienda agencia tributaria ministerio ayuntamiento correos banco nacional consejo tribunal
    agenzia entrate codice fiscale inps comune poste banca ministero consiglio sanitaria nazionale servizio tessera
    receita federal nota fiscal detran ministério câmara prefeitura correios caixa nacional segurança previdência
    belastingdienst gemeente kamer koophandel ministerie raad bank verzekering sociale dienst burgerservicenummer
    urząd skarbowy poczta polska ministerstwo rada sąd narodowy zakład ubezpieczeń społecznych dział obsługi klienta
    sea ocean canal tower bridge bay gulf mountain mountains theorem sequence method index scale test master assistant
    mon compte fêtes mi cuenta mijn asystent państwa państwo monte carlo eiffel suez panama
    god almighty internet earth mars venus jupiter saturn moon sun christ bible koran covid
    belo horizonte porto alegre guadalajara monterrey medellín cartagena córdoba cape town tel aviv addis ababa la paz
    den haag des moines baton rouge abu dhabi kuala lumpur
    担当者 お客様 皆様 皆 患者 業者 店員 利用者 会員 奥 娘 息子 主治医 受付 大家 管理人 従業員 社員 部長 課長 看護師 母 父
    """.split()
) | frozenset(word for name in ZONES for word in name.split())
"""Words of places, feasts, offices and products that are known to all."""
PLACE_CUES: Final = frozenset(
    """
    in at to from on via near into around towards leave leaving reach en a desde hasta hacia em para no na à depuis
    vers da per naar op vanaf te w we do z ze na nach aus until till before after since by-way through across
    """.split()
)
"""Words before places and feasts."""
OF_OTHERS: Final = frozenset(
    """
    than before after instead unlike versus vs compared
    als statt anstatt anstelle vor nach verglichen gegenüber
    avant après lieu contrairement comparé celui celle ceux celles
    antes después lugar comparado debajo encima aquel aquella
    depois vez abaixo acima daquele daquela
    prima dopo invece rispetto quello quella sotto sopra
    dan plaats vergeleken tegenover onder boven
    niż przed zamiast względem poniżej powyżej
    """.split()
)
"""Words in a clause that may tell of another row which it does not name."""
