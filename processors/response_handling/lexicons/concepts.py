"""What flags and limits are often about, in all languages: how its words begin, and signs of it."""

from collections.abc import Iterable
from typing import Final

CONCEPTS: Final = tuple(
    tuple(line.split())
    for line in """
    pet pets dog dogs cat cats hund hunde haustier katze chien animaux perro mascota cachorro cão cães animais cane cani animali hond huisdier kat pies psa zwierz ペット 犬 猫 宠物 狗
    smok rauch fum tabac rok papieros palenie pali 喫煙 たばこ 吸烟 抽烟
    park parking parkplatz stationn aparca estacion parchegg parkeer parkowa 駐車 停车
    wifi wlan internet wlan 无线 上网 ネット
    breakfast frühstück déjeuner petitdej desayuno desjejum café colazione ontbijt śniadan sniadan 朝食 早餐
    pool schwimm hallenbad piscin zwembad basen プール 泳池 游泳
    refund erstatt rückzahl rembours reembols rimbors terugbetal zwrot 返金 払い戻し 退款
    cancel storn kündig künd annul résil cancelar anula disdi disdetta annuleer opzeg odwoł anulow キャンセル 解約 取消
    return retour rückgabe zurückgeb renvoy devol devuel reso resi restitu terugstur zwróc 返品 退货
    exchang umtausch échang cambi troca sostitu ruil wymian 交換 换货
    transfer übertrag transfér transmi transfer trasfer overdra przenie 譲渡 转让
    deliver shipping ship liefer versand livr entreg envío envio consegn spedi bezorg lever dostaw wysył 配達 配送 送货
    pickup collect abhol retrait recog recoger retirar ritir afhal odbior odebr 受取 受け取り 自提
    wheelchair accessib barrier rollstuhl fauteuil handicap silla accesib cadeira acessív sedia carrozz rolstoel wózk 車椅子 バリアフリー 轮椅
    child kids kinder enfant niñ criança bambin kind dziec 子供 子ども 儿童 孩子
    vegan vegetar végé veget ビーガン ベジタリアン 素食
    gluten グルテン 麸质
    alcohol alkohol alcool 飲酒 アルコール 酒精
    cash bargeld bar espèces liquide efectivo dinheiro contanti contant gotówk 現金 现金
    card karte kreditkarte carte tarjeta cartão carta creditcard kaart kart カード 银行卡 信用卡
    theft steal stolen diebstahl gestohlen vol volé robo hurto roubo furto diefstal gestolen kradzież 盗難 盗窃 被盗
    luggage baggage gepäck koffer bagage equipaje maleta bagagem mala bagagl valig koffer bagaż 荷物 行李
    bike bicycl fahrrad rad vélo bicicl bici fiets rower 自転車 自行车
    warrant guarant garant gwaranc 保証 保修
    waterproof wasserdicht wasserfest étanche imperme impermeab waterdicht wodoodporn 防水
    dishwash spülmasch lave-vaissell lavavaj lava-louça lavastov vaatwas zmywark 食洗機 食器洗い 洗碗
    microwav mikrowell micro-onde microond magnetron mikrofal 電子レンジ 微波
    charger ladegerät chargeur cargador carregador caricatore oplader ładowark 充電器 充电器
    battery batter akku akumulat 電池 バッテリー 电池
    insur versicher assur seguro assicur verzeker ubezpiec 保険 保险
    night overnight nacht nuit noche noite notte nocleg noc 夜 泊 晚上 过夜
    dayuse tagesgast tagesbesuch 日帰り 钟点
    sunday sonntag dimanche domingo domenica zondag niedziel 日曜 周日 星期天
    holiday feiertag férié festivo feriado festiv feestdag święt 祝日 节假日
    elevator lift aufzug ascens elevador ascensor lift wind エレベーター 电梯
    balcon balkon terrass terraza varanda ベランダ バルコニー 阳台
    kitchen küche cuisine cocina cozinha cucina keuken kuchni キッチン 厨房
    laundry waschmasch lave-linge lavander lavatrice wasmach pralk 洗濯 洗衣
    heating heizung chauff calefac aquecim riscald verwarm ogrzew 暖房 暖气
    aircon airco klimaanlag climatis aire clima エアコン 空调
    abroad overseas ausland étranger extranjero exterior estero buitenland zagranic 海外 国外 境外
    medical medizin médic médica medic zdrowot 医療 治療 医疗
    dental dentist zahn dent tand stomatol denty 歯科 歯 牙科 牙
    ski skiing schifahr narci スキー 滑雪
    damage schaden schäden dommage daño dano dann schade szkod 損害 破損 损坏
    glass scheibe vitre cristal luna vidro vetro ruit szyb ガラス 玻璃
    student studier studen étudiant estudian studente ucz 学生 学割
    discount rabatt ermäßig réduc remis descuento desconto sconto korting zniżk rabat 割引 折扣 优惠
    express eil urgent urgente espresso spoed ekspres 速達 特急 加急
    online en-ligne línea オンライン 线上
    appointment termin rendez cita marcação consulta appuntam afspra wizyt umów 予約 预约
    passport reisepass passeport pasaporte passaporte passaporto paspoort paszport パスポート 护照
    visa visum visto wiza ビザ 签证
    vaccin impf vacun vacin szczep ワクチン 予防接種 疫苗
    roaming ローミング 漫游
    invoice rechnung facture factura fatura fattura factuur faktur 請求書 发票
    paid payment bezahl pay pagad pago paga pagat betaal zapłac opłac 支払 付款
    tax vat mwst steuer tva iva impuesto imposto btw podat 税
    seat sitzplatz place asiento assento posto zitplaats miejsc 座席 席 座位
    tent zelt tente tienda barraca tenda namiot テント 帐篷
    fire barbecue grill feuer feu fuego fogo fuoco vuur ognisk 焚き火 バーベキュー 烧烤
    drone drohne drone dron ドローン 无人机
    photo foto 写真 撮影 拍照
    music musik musique música musica muziek muzyk 音楽 音乐
    backup sicherung sauvegarde respaldo kopia バックアップ 备份
    certif zertifik certyfik 証明 证书
    repair reparatur répar repar riparaz herstel napraw 修理 维修
    available verfügbar frei disponib libre libero livre disponív beschikbaar vrij dostępn woln 空いて 空き 利用でき 可用 有空
    open geöffnet offen ouvert abiert abert apert otwart 営業 開いて 营业 开放
    valid gültig valable válid valid geldig ważn 有効 有效
    included inbegriffen enthalten inclus compris incluid incluíd incluso inbegrepen wliczon zawart 含まれ 包含
    rent miet louer loc alquil alug affitt noleg huur wynaj レンタル 租
    """.strip().splitlines()
)
"""Rows of words for one thing; keys are often English where the talk is not."""


_ROWS: Final = [(start, number) for number, starts in enumerate(CONCEPTS) for start in starts]
_SIGNS: Final = [(start, number) for start, number in _ROWS if start >= "\u3040"]
_STARTS: Final = {start: {number for other, number in _ROWS if other == start} for start, _ in _ROWS}
_SHORTEST, _LONGEST = 4, max(map(len, _STARTS))


def concepts_of(words: Iterable[str]) -> set[int]:
    """Which of those things words name: as they are, by how longer ones begin, or by signs in them."""
    found = set[int]()
    for word in words:
        if word >= "\u3040":
            found |= {number for sign, number in _SIGNS if sign in word}
        starts = (word[:size] for size in range(_SHORTEST, min(len(word), _LONGEST + 1)))
        found = found.union(*(_STARTS[start] for start in (*starts, word) if start in _STARTS))
    return found
