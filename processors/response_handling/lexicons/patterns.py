"""How addresses, dates, times and numbers are written, and what secrets and inner workings look like.

Every pattern has a bounded length, so that a search takes time linear in the text.
"""

import re
from typing import Final

L: Final = "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
"""Letters that make a word of digits which they touch."""
ADDRESS: Final = re.compile(
    r"(?P<url>(?:https?://|\bwww\.)[^\s<>()\[\]\"'`|、。，]{1,400})"
    r"|(?P<email>(?<![\w.+-])[A-Za-z0-9_.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})"
)
NUMERIC_DATE: Final = (
    rf"(?<![\d{L}./-])(?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}})(?!\d)"
    r"|(?<!\d)(?P<compact>(?:19|20)\d{2}(?:0[1-9]|1[0-2])[0-3]\d)(?!\d)"
    r"|(?<![\d./-])(?P<ymd>\d{4}(?P<y_mark>[/.])\d{1,2}(?P=y_mark)\d{1,2})(?![\d/])"
    r"|(?P<cjk>(?:\d{4}\s?年\s?)?\d{1,2}\s?月\s?\d{1,2}\s?[日号號]|\d{4}\s?年\s?\d{1,2}\s?月)"
    r"|(?<![\d./,-])(?P<dmy>\d{1,2}(?P<d_mark>[/.-])\s?\d{1,2}(?P=d_mark)\s?(?:\d{4}|\d{2}))(?![\d/]|[.,-]\d)"
    r"|(?:(?<=\b[Aa]m\s)|(?<=\b[Aa]b\s)|(?<=\b[dDvz][eo][mn]\s)|(?<=\b[Bb]is\s)|(?<=\b[zZ]um\s)|(?<=\b[vV]om\s)|(?<=tag,\s)|(?<=woch,\s))(?P<dm>\d{1,2}\.\s?\d{1,2}\.)(?!\d)"
)
YEAR: Final = r"(?:19|20)\d{2}(?!\d)"
NAMED_DATE: Final = (
    r"(?<![\w])(?P<month>{month})\s\d{{1,2}}(?:st|nd|rd|th)?(?![\d:%]|[.,]\d)(?:,?\s{year})?"
    r"|(?<![\d{L}.,:/-])\d{{1,2}}(?:st|nd|rd|th|er|º|°|\.)?(?:\s(?:de|del|of))?\s(?P<day_month>{month})(?!['’]s\s\d)"
    r"(?:(?:,|\sde|\sdel)?\s{year})?"
    r"|(?<![\w])(?P<only_month>{month})(?:,|\sde|\sdel|\sof)?\s{year}"
)
"""Dates with the name of a month, of which `month` matches one."""
TIME: Final = re.compile(
    rf"(?:(?P<iso>(?<=[\d ]T))|(?<![\d{L}.:,])(?<!UTC[+-])(?<!GMT[+-]))(?:[01]?\d|2[0-4]):[0-5]\d(?P<second>:[0-5]\d(?:\.\d{{1,9}})?)?(?![\d:])"
    r"\s?(?P<half>[ap]\.?\s?m\b\.?|[AP]\.?M\b\.?)?(?P<zone>\s?(?:Z|UTC|GMT)\b|(?(iso)[+-]|(?(second)[+-]|\+))\d{2}:?\d{2}(?!\d))?"
    rf"|(?<![\d{L}.:,])(?:1[0-2]|[1-9])(?:[.:][0-5]\d)?\s?(?P<only_half>[ap]\.?\s?m\b\.?|[AP]\.?M\b\.?)"
    rf"|(?<![\d{L}.,:])(?:[01]?\d|2[0-4])\s?[hH]\s?[0-5]\d(?![\d{L}]|\s?m)"
    rf"|(?:(?<=\b[àÀ]s )|(?<=\bas )|(?<=\blas )|(?<=\bà ))(?:[01]?\d|2[0-4])\s?h(?![\d{L}]|\s?\d|\sd[e'’])"
    rf"|(?<![\d{L}.,:])(?:[01]?\d|2[0-4])(?:[.:](?P<uhr_minute>[0-5]\d))?\s?(?:Uhr|(?(uhr_minute)(?:uur|(?=(?:tot|bis|en|und)\s\d{{1,2}}[.:][0-5]\d\s(?:uur|Uhr)))|Uhr))\b(?:\s[0-5]\d(?!\d))?"
    r"|(?P<part>上午|下午|晚上|早上|中午|午前|午後)?\s?(?<!\d)\d{1,2}\s?[時时點点](?!間|间)\s?(?:\d{1,2}\s?分|(?P<cjk_30>半))?"
)
DAYPARTS: Final = {"下午": 12, "晚上": 12, "午後": 12, "上午": 0, "早上": 0, "午前": 0, "中午": 12}
NUMBER: Final = re.compile(
    rf"(?P<id>(?<![{L}\d])#?(?=[A-Za-z][A-Za-z_./-]{{0,30}}\d)[A-Za-z][A-Za-z0-9]{{0,40}}(?:[-_./][A-Za-z0-9]{{1,40}}){{0,8}})"
    rf"|(?<![{L}\d])(?P<number>\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}}){{1,5}}(?![\d{L}])(?:[.,]\d{{1,9}}(?!\d))?"
    r"|\d{1,30}(?:[.,'’:/\-–]\d{1,30}){0,12})"
)
GLUED: Final = re.compile(rf"[{L}][{L}\d_-]{{0,40}}")
BEFORE: Final = re.compile(
    r"(?:(?P<code>\b[A-Z]{3})|(?P<sign>(?:US|R|AU|CA|MX|A|C|NZ|HK|S)?[$€£¥￥₹₩]|\bzł|\bkr\.?))?\s?(?P<minus>[-−+])?(?P<open>\()?$"
)
AFTER: Final = re.compile(
    r"[\s\u00a0\u202f]?-?(?:(?P<percent>%|％|‰)|(?P<sign>[$€£¥￥₹₩])|°\s?(?P<scale>[CF]\b)?(?P<degree>)|(?P<square>m²|㎡|km²|m³|℃)"
    rf"|(?P<word>(?:km/h|m/s|Mbit/s|sq\sft|[{L}]{{1,20}}\d?(?![{L}\d]))\.?))"
)
CJK_AFTER: Final = re.compile(r"\s?(?P<word>[ぁ-んァ-ヶー一-鿿]{1,6})")
CJK_MONEY: Final = ("円", "元", "块", "ドル", "美元", "欧元", "ユーロ", "日元")
ORDINAL: Final = re.compile(
    r"(?:st|nd|rd|th|er|ère|re|e|ème|nd|de|ste|º|ª|o|a)\b|[º°ª](?!\s?[CF])", re.IGNORECASE
)
LIST_MARK: Final = re.compile(r"(?:^|\n)[ \t]{0,12}(?:[-*•]\s)?\(?\d{1,3}[.)](?=\s)")
POWER: Final = re.compile(
    r"\s(?:cub[eioí]c?[a-z]{0,3}|quadr[a-z]{1,4}|cuadrad[a-z]{1,2}|carrés?|cubes?)(?![^\W\d_])", re.IGNORECASE
)
GLUED_SCALES: Final = {"k": 1e3, "m": 1e6, "bn": 1e9, "b": 1e9}
SUFFIXES: Final = frozenset("x s k bn m bps pp p fps px mp mah v a pt".split())
"""What stands right behind a number and is part of it, beside units and scales."""

SECRETS: Final = (
    ("key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,20}\b")),
    ("key", re.compile(r"\b(?:sk|pk|rk|ghp|gho|glpat|xox[abp]|whsec|AIza|npm|pat)[-_][A-Za-z0-9_-]{12,120}")),
    ("token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,400}\.[A-Za-z0-9_-]{8,400}")),
    ("private key", re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")),
    ("token", re.compile(r"\bBearer [A-Za-z0-9._~+/-]{16,400}")),
    ("password in an address", re.compile(r"\b[a-z][a-z0-9+]{1,15}://[^\s/:@]{1,60}:[^\s/@]{1,60}@")),
)
SECRET_MARKS: Final = (
    "AKIA", "ASIA", "eyJ", "BEGIN", "Bearer ", "://",
    *(head + mark for head in "sk pk rk ghp gho glpat xoxa xoxb xoxp whsec AIza npm pat".split() for mark in "-_"),
)  # fmt: skip
"""What has to stand in an answer before those are tried at every place of it."""
WRITTEN_SECRET: Final = re.compile(
    r"(?:password|passwd|passphrase|pwd|[_-]pass|passwort|kennwort|contraseña|senha|wachtwoord|hasło|mot de passe|secret|api[_-]?key|client[_-]?secret"
    r"|access[_-]?token|auth[_-]?token|パスワード|密码)[\"']?\s{0,2}[=:：]\s{0,2}[\"']?([^\s\"',;&<>]{6,120})",
    re.IGNORECASE,
)
"""A secret that a text of the evidence names as one."""
SECRET_NAMES: Final = (
    "passw", "passphr", "mot de passe", "_pass", "-pass", "pwd", "kennwort", "contrase", "senha", "wachtwoord", "hasło", "has\\u0142o", "secret",
    "apikey", "api_key", "api-key", "api key", "privatekey", "private_key", "accesskey", "access_key", "secretkey", "token", "credential",
    "authorization", "パスワード", "密码", "\\u30d1", "\\u5bc6",
)  # fmt: skip
"""What the name of a secret has in it, also where JSON escapes its letters."""
_CLOSING: Final = {
    "not": ("do not", "must not", "not to be", "not for"), "n't": ("don't",), "never": ("never",), "confid": ("confiden",),
    "only": tuple(f"{who}{use} only" for who in ("internal", "staff", "hr", "admin", "admins", "manager", "managers") for use in ("", " use")),
    "intern": ("nur intern", "nur für", "usage interne", "uso interno", "alleen intern"), "vertr": ("vertraul", "vertrouw"),
    "nicht": ("nicht an kunden", "nicht weiter", "nicht für kunden"), "ne pas": ("ne pas ",),
    "no ": ("no compart", "no revel", "no comun", "no divulg"), "riserv": ("riservat",), "non ": ("non d", "non c", "non r"), "niet": ("niet de", "niet do"),
    "nie ": ("nie u", "nie p"), **{mark: (mark,) for mark in ("poufne", "não ", "社外秘", "部外秘", "口外", "社内限定", "内部资料", "保密", "仅限内部", "不得", "请勿", "\\u")},
}  # fmt: skip
CLOSING_MARKS: Final = {
    stem: (*marks, *(mark.replace(" ", "") for mark in marks if " " in mark.strip()))
    for stem, marks in _CLOSING.items()
}
"""What every text has in it that says that it is not for all, in its own words or in those of a key, by stem."""
CONFIDENTIAL: Final = re.compile(
    r"(?:do not|don't|must not|never|not to be|not for)[ _](?:be )?(?:share|relay|disclose|tell|reveal|communicate|customer|the customer|(?:the )?public|externa)"
    r"|(?:internal|staff|hr|admins?|managers?)(?:[ _]use)?[ _]only|confidential|nur[ _](?:für den )?intern|vertraulich|nicht (?:an kunden|weitergeben|für kunden)"
    r"|confidentiel|usage interne|ne pas (?:communiquer|divulguer|partager|transmettre)|confidencial|uso interno|no (?:compartir|revelar|comunicar|divulgar)"
    r"|não (?:divulgar|compartilhar|partilhar|comunicar|informar|revelar)|riservato|non (?:divulgare|comunicare|condividere|rivelare)"
    r"|vertrouwelijk|niet (?:delen|doorgeven)|alleen intern|poufne|nie (?:udostępniać|ujawniać|przekazywać)"
    r"|社外秘|部外秘|口外|社内限定|内部资料|保密|仅限内部|不得(?:告知|透露|外传)|请勿(?:告知|透露|外传)"
)
"""How a record says that it is not for whoever asks."""
SECRET_ENDS: Final = frozenset(
    tuple(name.split("_"))
    for name in "api_key private_key access_key secret_key access_token auth_token refresh_token client_secret".split()
)
TRACE_MARKS: Final = (
    "Traceback", 'File "', ".java:", ".kt:", ".scala:", ".cs:", ".js:", ".ts:", ".py:", "(/", ":\\", "(file:", "(node:",
    "Exception: ", "Error: ", "goroutine ", "panic: ",
)  # fmt: skip
TRACES: Final = (
    re.compile(r"Traceback \(most recent call last\)"),
    re.compile(r"\bFile \"[^\"\n]{1,200}\", line \d{1,6}"),
    re.compile(r"\bat [\w$.<>]{3,120}\([\w$]{1,60}\.(?:java|kt|scala|cs|js|ts|py):\d{1,6}"),
    re.compile(r"\bat [\w$.<> ]{1,80} \((?:/|[A-Z]:\\|file:|node:)[^()\n]{1,200}:\d{1,6}:\d{1,6}\)"),
    re.compile(r"\b(?:java|javax|org|com|System)\.[\w.]{2,80}(?:Exception|Error): "),
    re.compile(r"\bgoroutine \d{1,6} \[|\bpanic: runtime error"),
)
IP: Final = re.compile(
    r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}|f[cde][0-9a-f]{2}:(?::?[0-9a-f]{1,4}){1,7}|::1)(?![\w:]|\.\d)",
    re.IGNORECASE,
)
HOST_MARKS: Final = (".internal", ".local", ".corp", ".lan", ".intra", ".intern", ".svc", ".int.", "@int")
HOSTS: Final = (
    re.compile(
        r"\b(?:[a-z0-9-]{1,40}\.){1,6}(?:internal|local|corp|lan|intranet|intern|svc|localdomain)\b(?:\.[a-z]{2,10})?",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:\b[a-z0-9-]{1,40}(?:\.[a-z0-9-]{1,40}){0,3}\.|@)(?:int|internal|corp|intern)\.[a-z0-9.-]{2,60}",
        re.IGNORECASE,
    ),
)

ERROR_WORDS: Final = {
    "permanent": (
        "unauthorised", "unauthorized", "forbidden", "permission", "denied", "not found", "no such",
        "does not exist", "401", "403", "404", "authentication", "credential", "unsupported", "not allowed",
    ),
    "retryable": (
        "rate limit", "ratelimit", "too many", "429", "time out", "timeout", "timed out", "deadline", "timedout",
        "temporar", "unavailable", "internal server error", "http 500", "502", "503", "504", "overload", "connection", "try again", "retry after",
    ),
    "argument": (
        "invalid", "validation", "missing", "required", "must be", "cannot be empty", "malformed",
        "bad request", "400", "422", "out of range", "unknown field",
    ),
}  # fmt: skip
"""Texts in an error that decide its class."""
ABSENCE: Final = re.compile(
    r"not found|no such|(?:not|n't) exist|404|no (?:results?|records?|match|rows?|data|entr)|unknown|nicht gefunden"
    r"|no encontrad|não encontrad|non trovat|introuvable|niet gevonden|nie znaleziono|見つかり|存在しま|不存在|未找到|没有找到"
)
FAILED_TEXT: Final = re.compile(
    r"\s{0,9}(?:[\w.]{0,60}(?:Error|Exception|ConnectionPool)\b|(?:fatal|fehler|erreur|errore|erro|fout|błąd)\b\s{0,2}[:(](?!\s?\d)"
    r"|(?:read|connect|connection|request|gateway)\s(?:timed out|timeout|refused|reset)\b"
    r"|(?:the\s)?(?:service|server|tool)\s(?:is\s)?(?:currently\s|temporarily\s)?unavailable\b"
    r"|temporary\s(?:\w{1,20}\s){0,3}(?:inconsistency|failure|outage|problem|issue)\b|エラー|错误|HTTP(?:/\d(?:\.\d)?)?\s[45]\d\d\b)",
    re.IGNORECASE,
)
"""How texts begin that programs write in place of a result when they fail."""
UNKNOWN_TOOL: Final = re.compile(
    r"unknown tool\b|no such tool|tool .{1,80} (?:not found|does not exist)|available tools:", re.IGNORECASE
)
"""How a framework refuses the call of a tool that it does not have, in the text that the model receives."""
VALIDATION: Final = re.compile(r"validation errors?\b|fix the errors and try again", re.IGNORECASE)
"""How Pydantic and frameworks over it refuse arguments, whose words (`extra_forbidden`, `try again`) mislead."""
TOOL_CALL: Final = re.compile(
    r"<tool_call>|<function[=_]|<\|python_tag\|>"
    r"|\{\s{0,9}\"(?:name|function|tool)\"\s{0,9}:\s{0,9}\"[\w.:-]{1,80}\"\s{0,9},\s{0,9}\"(?:arguments|parameters|args|input)\"\s{0,9}:"
)
"""How models write tool calls that they were to request instead."""
PROMISE: Final = re.compile(
    r"(?:(?:now|next|first|then|okay|ok|sure|great|alright),?\s)?(?:let me\s(?!know)|let's\s|i['’]ll\s|i will\s|i['’]m going to\s|i am going to\s)"
    r"(?:\w{1,12}\s)?(?:search|look|check|find|fetch|retrieve|calculate|compute|get|call|try|correct|query|gather|proceed|start|begin|use)\b"
    r"|(?:one moment|please wait|hold on)\b",
    re.IGNORECASE,
)
"""How a sentence begins that says what an agent is about to do."""
PROMISE_MARKS: Final = (
    "let me ",
    "let's ",
    "'ll ",
    "’ll ",
    "i will ",
    "going to ",
    "moment",
    "wait",
    "hold on",
)
"""What every promise has in it."""
NOTICE: Final = re.compile(
    r"agent stopped due to|sorry, need more steps|(?:max(?:imum)?(?: number of)?|too many) (?:iterations|steps|turns|retries)\b"
    r"|you(?:'ve| have) (?:hit|reached|exceeded) (?:your|the) .{0,40}(?:limit|quota)|(?:api )?(?:quota|rate limit) (?:was )?(?:exceeded|reached)"
    r"|request timed out|(?:error code|http error|api error):? [45]\d\d\b|insufficient_quota",
    re.IGNORECASE,
)
"""What harnesses put in the place of an answer."""
PROPOSAL: Final = re.compile(
    r"please confirm|would you like (?:me )?to (?!.{0,30}(?:anything|else))|\b(?:shall|should) i\b|do you want me to|möchten sie, dass|\bsoll ich\b"
    r"|souhaitez-vous que|voulez-vous que|dois-je|¿(?:desea|quiere) que|deseja que|posso prosseguir|vuole che|\bzal ik\b|wilt u dat|\bczy mam\b"
    r"|しましょうか|してもよろしい|请确认|要我",
    re.IGNORECASE,
)
"""How an answer asks for the go-ahead, so that it does not claim to be done."""
