"""Words that make sentences and carry no topic, by language, and what questions begin with. Data, and which language it is."""

from __future__ import annotations

import re

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": """
            a an the and or but if then than so as of at by for from in into on onto to with about is are was
            were be been being am do does did doing done has have had having can could may might must shall
            should will would i me my mine we us our ours you your yours he him his she her hers it its they
            them their theirs this that these those there here what which who whom whose when where why how
            some any each also just only very really quite please i'm i'd i've i'll it's what's who's where's
            how's there's that's let's don't tell show give explain want wanna need like know wonder wondering
            looking hi hello hey thanks thank lot actually basically
        """,
        "de": """
            der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als von bei für
            aus in im an am auf zu zum zur nach mit über ist sind war waren sein bin hat haben hatte habe kann
            können könnte könntest kannst muss soll sollte wird werden würde ich mir mich wir uns du dir dich
            er sie es ihr ihnen ihre ihren mein meine meinen dein deine dies diese dieser dieses diesen was
            welche welcher welches welchen wer wem wen wann wo warum wieso wie denn auch nur sehr bitte gibt
            man sich hallo danke möchte will
        """,
        "fr": """
            le la les l un une des du de d et ou mais si dans sur avec pour par est sont était être a ont
            avoir je j me moi nous vous il elle on ils elles ce cet cette ces c que qui qu quoi quand où
            pourquoi comment quel quelle quels quelles est-ce se s son sa ses mon ma mes votre vos aux au en y
            très aussi bonjour merci
        """,
        "es": """
            el la los las un una unos unas y o pero si en con para por es son era ser estar está están he ha
            han yo me mi nos tú te su sus se lo le de del al que qué quién quiénes cuándo dónde cómo cuál
            cuáles este esta estos estas muy también hay hola gracias
        """,
        "he": """
            מה מי איפה היכן מתי למה מדוע איך כיצד האם של על את אל עם זה זו זאת אלה הוא היא הם הן אני אנחנו אתה
            אתם יש גם רק או אם כי אבל לי לנו לך לו לה להם בבקשה שלי שלנו שלך איזה איזו אילו היה הייתה היו שלום
            תודה כדי
        """,
    }.items()
}

# Pronouns that have a capital anywhere and are no names.
CAPITAL_PRONOUNS = frozenset(["i", "i'm", "i'd", "i've", "i'll"])

# Two words that together ask for a number or a way; each alone would be dropped.
QUANTITIES = frozenset(
    f"{how} {what}"
    for how, whats in {
        "how": ("many", "much", "long", "old", "far", "often", "to", "tall", "big"),
        "wie": ("viele", "viel", "lange", "oft", "alt"),
    }.items()
    for what in whats
)

# What leads up to a question. Each is tried at the beginning, again and again.
_LEADS = {
    "en": (
        r"hi|hello|hey|please|thanks|thank you|ok|okay|so|well|explain|google|look up|do you know",
        r"(?:can|could|would|will) you(?: please)?",
        r"i(?:'d| would) (?:like|love) to(?: know| find(?: out)?| see| learn| read)?(?: more)?(?: about)?",
        r"i(?: really)? (?:want|need|have|am trying|wish) to"
        r" (?:know|find(?: out)?|see|learn|buy|search(?: for)?|look(?: for| up)?)(?: about)?",
        r"i(?:'m| am) (?:looking|searching) for",
        r"i(?: was|'m| am) wondering(?: if| whether)?",
        r"help me(?: to)?(?: find| understand)?",
        r"(?:tell|show|give|find|get|explain(?: to)?) (?:me|us)(?: more)?(?: about)?",
        r"search(?: the (?:web|internet))? for",
        r"what (?:is|are|was|were) the (?:meaning|definition) of",
        r"(?:what|who)(?:'s| is| are| was| were)",
    ),
    "de": (
        r"hallo|bitte|danke|also|weißt du|wissen sie",
        r"(?:kannst|könntest|würdest) du(?: mir)?(?: bitte)?",
        r"(?:können|könnten|würden) sie(?: mir)?(?: bitte)?",
        r"ich (?:möchte|will|würde gern|suche|brauche)(?: wissen)?",
        r"(?:sag|sagen|zeig|zeige|zeigen|erkläre|erklär|gib|finde|such|suche)(?: sie)?(?: mir| uns)?(?: bitte)?",
        r"was (?:ist|sind|war)|wer (?:ist|war)",
    ),
    "fr": (
        r"bonjour|merci|svp|dis-moi|dites-moi|qui est|qu'est-ce que(?: c'est)?",
        r"(?:peux-tu|pouvez-vous|pourriez-vous)(?: m'expliquer| me dire)?",
        r"je (?:veux|voudrais|cherche)(?: savoir)?",
    ),
    "es": (
        r"hola|gracias|por favor|dime",
        r"(?:puedes|podrías|puede)(?: decirme| explicarme)?",
        r"(?:quiero|quisiera|necesito|busco)(?: saber)?",
        r"qué (?:es|son)|quién (?:es|fue)",
    ),
    "he": (
        r"שלום|היי|בבקשה|תודה|(?:אתה|את) (?:יכול|יכולה)",
        r"אני (?:רוצה|צריך|צריכה|מחפש|מחפשת)(?: לדעת| למצוא)?",
        r"(?:תגיד|תגידי|ספר|ספרי|תסביר|תסבירי|הסבר|מצא|חפש)(?: לי)?",
        r"מה (?:זה|זו|הוא|היא)|מי (?:זה|הוא|היא)",
    ),
}
LEAD_INS: dict[str, re.Pattern[str]] = {
    language: re.compile(rf"^[¿¡]?(?:{'|'.join(leads)})(?=[^\w]|$)[\s,:]*", re.I) for language, leads in _LEADS.items()
} | {"zh": re.compile(r"^(?:请问|请|你好|告诉我|帮我(?:找|查)?|我想(?:知道|找)?|什么是)[\s，,：:]*")}

_SCRIPTS = (
    ("he", re.compile(r"[\u05d0-\u05ea]")),
    ("ar", re.compile(r"[\u0621-\u064a]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_LATIN = re.compile(r"[^\W\d_]")


def script_language(text: str) -> str:
    """The language of a text, by its script and, for Latin letters, by its function words: English unless another has
    more. A guess for choosing stop words, no more."""
    letters = len(_LATIN.findall(text))
    for language, script in _SCRIPTS:
        if len(script.findall(text)) * 2 > letters:
            return language
    words = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text.casefold())
    counts = {language: sum(word in FUNCTION_WORDS[language] for word in words) for language in ("en", "de", "fr", "es")}
    return max(counts, key=lambda language: counts[language])
