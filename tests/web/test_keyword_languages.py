"""Keywords in every language that knowledge bases analyse: the topic is kept, function words are
dropped."""

from __future__ import annotations

import pytest

from groundhook.core.language.catalogue import languages
from groundhook.core.language.detect import detect
from groundhook.handlers.web.keywords import extract

QUESTIONS = {
    "armenian": ("Ո՞րն է Հայաստանի մայրաքաղաքը։", "Հայաստանի մայրաքաղաքը"),
    "arabic": ("ما هي عاصمة مصر؟", "عاصمة مصر"),
    "azerbaijani": ("Azərbaycanın paytaxtı hansı şəhərdir?", "Azərbaycanın paytaxtı şəhərdir"),
    "basque": ("Zein da Euskal Herriko hiriburua?", "Euskal Herriko hiriburua"),
    "bengali": ("বাংলাদেশের রাজধানী কোথায়?", "বাংলাদেশের রাজধানী"),
    "catalan": ("Quina és la població de Barcelona?", "població Barcelona"),
    "chinese": ("这个项目的目的是什么？", "这个项目 目的"),
    "czech": ("Jaké je hlavní město České republiky?", "hlavní město České republiky"),
    "danish": ("Hvad er hovedstaden i Danmark?", "hovedstaden Danmark"),
    "dutch": ("Hoeveel mensen wonen er in Amsterdam?", "mensen wonen Amsterdam"),
    "english": ("What is the population of Berlin?", "population Berlin"),
    "esperanto": ("Kiu estas la ĉefurbo de Brazilo?", "ĉefurbo Brazilo"),
    "estonian": ("Mis on Eesti pealinn?", "Eesti pealinn"),
    "finnish": ("Mikä on Suomen pääkaupunki?", "Suomen pääkaupunki"),
    "french": ("Quelle est la capitale de la France ?", "capitale France"),
    "german": ("Was kostet ein Flug von Berlin nach Rom?", "kostet Flug Berlin Rom"),
    "greek": ("Ποια είναι η πρωτεύουσα της Ελλάδας;", "πρωτεύουσα Ελλάδας"),
    "hebrew": ("מה האוכלוסייה של ירושלים?", "האוכלוסייה ירושלים"),
    "hindi": ("भारत की राजधानी क्या है?", "भारत राजधानी"),
    "hinglish": ("Bharat ki rajdhani kya hai?", "Bharat rajdhani"),
    "hungarian": ("Mi a fővárosa Magyarországnak és hol van?", "fővárosa Magyarországnak"),
    "indonesian": ("Apa ibu kota dari negara Indonesia?", "ibu kota negara Indonesia"),
    "irish": ("Cad é príomhchathair na hÉireann?", "príomhchathair hÉireann"),
    "italian": ("Come posso installare Linux sul mio computer?", "installare Linux computer"),
    "japanese": ("東京でおすすめのラーメン屋を教えてください", "東京 おすすめ ラーメン屋"),
    "kazakh": ("Қазақстанның астанасы қай қала?", "Қазақстанның астанасы қала"),
    "korean": ("대한민국의 수도는 어디인가요?", "대한민국 수도"),
    "lithuanian": ("Kokia yra Lietuvos sostinė?", "Lietuvos sostinė"),
    "nepali": ("नेपालको राजधानी कहाँ छ?", "नेपालको राजधानी"),
    "norwegian": ("Hva er hovedstaden i Norge?", "hovedstaden Norge"),
    "persian": ("پایتخت ایران کجاست؟", "پایتخت ایران"),
    "polish": ("Jaka jest stolica Polski?", "stolica Polski"),
    "portuguese": ("Qual é a capital de Portugal?", "capital Portugal"),
    "romanian": ("Care este capitala României?", "capitala României"),
    "russian": ("Какая столица у Франции?", "столица Франции"),
    "serbian": ("Који је главни град Србије?", "главни град Србије"),
    "sesotho": ("Motse-moholo wa Lesotho ke ofe?", "Motse-moholo Lesotho"),
    "slovene": ("Katero je glavno mesto Slovenije?", "glavno mesto Slovenije"),
    "spanish": ("¿Cuál es la capital de España?", "capital España"),
    "swedish": ("Vad är huvudstaden i Sverige?", "huvudstaden Sverige"),
    "tajik": ("Пойтахти Тоҷикистон кадом аст?", "Пойтахти Тоҷикистон"),
    "tamil": ("இந்தியாவின் தலைநகரம் எது?", "இந்தியாவின் தலைநகரம்"),
    "thai": ("เมืองหลวงของประเทศไทยคืออะไร", "เมืองหลวง ประเทศไทย"),
    "turkish": ("Türkiye'nin başkenti neresidir?", "Türkiye'nin başkenti"),
    "ukrainian": ("Яка столиця України?", "столиця України"),
    "urdu": ("پاکستان کا دارالحکومت کیا ہے؟", "پاکستان دارالحکومت"),
    "vietnamese": ("Thủ đô của Việt Nam là gì?", "Thủ đô Việt Nam"),
    "yiddish": ("וואָס איז די הויפּטשטאָט פֿון פֿראַנקרײַך?", "הויפּטשטאָט פֿראַנקרײַך"),
}


def test_every_analysed_language_has_function_words() -> None:
    assert {each.name for each in languages().values()} == set(QUESTIONS)
    assert all(each.lines("function") or each.lines("cut") for each in languages().values())


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_the_language_of_a_question_is_recognised(name: str) -> None:
    assert languages()[detect(QUESTIONS[name][0], question=True)].name == name


@pytest.mark.parametrize("language", sorted(QUESTIONS))
@pytest.mark.parametrize("given", [True, False])
def test_the_topic_is_kept_and_function_words_are_dropped(language: str, given: bool) -> None:
    question, query = QUESTIONS[language]
    assert extract(question, language=language if given else "auto").query == query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("请问中国的首都是什么？", "中国 首都"),
        ("東京的天氣怎麼樣？", "東京 天氣"),
        ("如何安装有机太阳能电池", "安装有机太阳能电池"),
        ("パスポートの更新に必要な書類について知りたい", "パスポート 更新 必要な書類"),
        ("ร้านอาหารที่ดีที่สุดในเชียงใหม่อยู่ที่ไหน", "ร้านอาหารที่ดีที่สุด เชียงใหม่"),
        ("民主主义的定义", "民主主义 定义"),
        ("민주주의 정의를 알려주세요", "민주주의 정의"),
        ("机器学习", "机器学习"),
        ("食べられる花", "食べられる花"),
        ("วิธีทำต้มยำกุ้ง", "วิธีทำต้มยำกุ้ง"),
    ],
)
def test_words_that_contain_a_function_word_are_kept_whole(text: str, query: str) -> None:
    assert extract(text).query == query


def test_a_language_is_set_by_its_code_with_or_without_a_country_or_by_its_name() -> None:
    question, query = QUESTIONS["portuguese"]
    assert {
        extract(question, language=given).query for given in ("pt", "pt-BR", "Portuguese", "auto")
    } == {query}
    assert extract(question, language="xx").query == question.rstrip("?")


def test_names_that_are_function_words_elsewhere_are_kept() -> None:
    assert extract("AI in medicine, what is it good for?").query == "AI medicine good"
    assert extract("IT jobs near the sea, which are there?").query == "IT jobs near sea"
