"""Japanese; words are looked for as they stand, since nothing parts them."""

from typing import Final

from processors.response_handling.lexicon import Words

WORDS: Final = Words(
    language="ja",
    is_spaced=False,
    function="の は が を に で と も です ます した ました から まで より ください",
    months="||||||||||||",
    weekdays="月曜|火曜|水曜|木曜|金曜|土曜|日曜",
    numbers="一=1 二=2 三=3 四=4 五=5 六=6 七=7 八=8 九=9 十=10",
    counters="つ 件 個 人 名 台 点 本 枚 回 社 部屋 箇所 室 冊 匹 日間 時間 泊 ヶ月 か月 週間",
    scales="千=3 万=4 億=8 兆=12",
    units="""
    ms: ミリ秒; s: 秒; min: 分 分間; h: 時間; d: 日 日間 泊; wk: 週間; mo: か月 ヶ月 カ月 ヵ月; y: 年 年間; %: パーセント ポイント;
    m: メートル; km: キロメートル キロ; cm: センチ; g: グラム; kg: キログラム; l: リットル; deg: 度; t: トン; mi: マイル; m2: 平米 平方メートル
    """,
    negation="ない なかった ません ず なし 不可 未 無い 無し いいえ",
    failure="""
    エラー 失敗 問題 できません できな 申し訳 残念 拒否 無効 期限切れ 不足 利用でき 障害 タイムアウト 中断 一部 破損 ただし ですが しかし
    ません ない 停止 再試行 除 超過 見つかりません
    """,
    pending="処理中 保留 待ち 予定 確認中 審査 下書き 準備中 見込み 申請中 進行中 シミュ ドライラン テスト 仮",
    done="完了 削除しました 作成しました 送信しました 支払い済 済み 予約しました 更新しました 配達 追加しました 確定 成功 しました されました",
    all="全て すべて 全部 全員 全件 全 両方 いずれも どちらも 完全",
    yes="はい ええ",
    no="いいえ",
    up="増加 上昇 増え 上回 上がり 伸び 増",
    down="減少 下落 減り 減って 下回 下がり 低下 減",
    approx="約 およそ ほぼ 程度 ほど 前後 ごろ 頃 以上 以下 弱 強 余り",
    relative="今日 本日 明日 昨日 今 来週 先週 翌日 明後日 先月 来月 今週 今月",
    secret="パスワード 秘密 トークン 鍵 キー 暗証",
)
