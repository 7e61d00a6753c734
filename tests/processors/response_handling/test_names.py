"""Rule RH3.1: names of people and organisations that nobody named."""

import pytest

from processors.model import JsonObject
from tests.processors.response_handling.test_rows import found
from tests.support.agent_responses import call

TRIP: JsonObject = {
    "order": "T-118",
    "vehicle": "van 7",
    "arrives": "2026-05-04T09:30:00",
    "driver": "K. Osei",
}


@pytest.mark.parametrize(
    "answer",
    [
        "Van 7 arrives at 9:30. Priscilla Thorne will unload it.",
        "Van 7 arrives at 9:30; the load is insured by Meridian Mutual.",
        "Van 7 kommt um 9:30 Uhr. Abgeladen wird sie von Jörg Petersen.",
        "Le fourgon 7 arrive à 9 h 30, déchargé par Solène Vasseur.",
        "El furgón 7 llega a las 9:30 y lo descarga la empresa Grúas Montalbán.",
        "A carrinha 7 chega às 9h30 e será descarregada pelo senhor Tavares.",
        "Il furgone 7 arriva alle 9:30 e lo scarica la signora Bertolucci.",
        "Busje 7 komt om 9:30 aan en wordt gelost door Sjoerd Hofstra.",
        "Furgonetka 7 przyjedzie o 9:30, a rozładuje ją Bożena Kaczmarek.",
        "The driver of van 7, which arrives at 9:30, is called Ferdinand.",
        "7号车9:30到，由罗经理卸货。",
        "7号車は9時30分に着き、高瀬さんが荷を下ろします。",
    ],
)
def test_a_name_that_nobody_gave_is_found(answer: str) -> None:
    assert "RH3.1" in found(answer, [call(TRIP)])


@pytest.mark.parametrize(
    "answer",
    [
        "Van 7 arrives at 9:30. Kwame Osei drives it.",
        "Van 7 arrives in Great Yarmouth at 9:30 Eastern Time.",
        "Good Friday and Black Friday aside, van 7 arrives at 9:30.",
        "## Next Steps\n\n| Expected Arrival | Vehicle Name |\n|---|---|\n| 9:30 | van 7 |",
        "**Driving Time**: unknown\n- Planned Stopover: none\n- Estimated Arrival – 9:30",
        "Der Fahrer K. Osei kommt um 9:30 Uhr, ohne jede Minute Verspätung. Die Ladung trifft Montag ein.",
        "Le fourgon 7 arrive à 9 h 30 à Clermont Ferrand, après le Nouvel An.",
        "El furgón 7 llega a las 9:30 desde Puerto Rico, pasado el Año Nuevo.",
        "A carrinha 7 chega às 9h30 a Vila Real.",
        "Pan K. Osei przyjedzie o 9:30. Proszę o kontakt z Działem Obsługi.",
        "7号车9:30到，请联系客户经理。",
        "7号車は9時30分に着きます。担当者さんにお伝えください。",
    ],
)
def test_what_is_written_like_a_name_is_left_alone(answer: str) -> None:
    assert "RH3.1" not in found(answer, [call(TRIP)], "When does my load arrive?")
