"""Chinese; words are looked for as they stand, since nothing parts them."""

from typing import Final

from processors.response_handling.lexicon import Words

WORDS: Final = Words(
    language="zh",
    is_spaced=False,
    function="的 了 是 在 您 你 我 他 我们 这 那 个 和 有 为 与 请 已 还 将 也 就",
    months="一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
    weekdays="星期一 周一 礼拜一|星期二 周二|星期三 周三|星期四 周四|星期五 周五|星期六 周六|星期日 星期天 周日",
    numbers="一=1 两=2 二=2 三=3 四=4 五=5 六=6 七=7 八=8 九=9 十=10",
    counters="个 件 名 位 台 条 张 本 次 笔 项 份 间 辆 只 家 套 天 小时 晚 周 个月 人",
    scales="千=3 万=4 亿=8",
    units="""
    ms: 毫秒; s: 秒 秒钟; min: 分钟 分; h: 小时; d: 天 日 晚; wk: 周 星期; mo: 个月; y: 年; %: 百分点; m: 米; km: 公里 千米;
    cm: 厘米; g: 克; kg: 公斤 千克; l: 升; deg: 度; t: 吨; mi: 英里; m2: 平方米 平米; C: 摄氏度
    """,
    negation="不 没 没有 未 无 无法 别 非 否 尚未",
    failure="""
    错误 失败 问题 无法 不能 抱歉 对不起 遗憾 拒绝 无效 过期 不足 不可用 故障 超时 中断 部分 损坏 但 不过 然而 没有 未能 除 超过
    重试  不成功 未 没
    """,
    pending="处理中 待 等待 预计 即将 审核 草稿 还在 进行中 计划 安排 模拟 试运行 正在 申请中",
    done="已 完成 成功 删除了 创建了 发送了 支付了 好了 了",
    all="全部 所有 都 均 每 全 两 整个 完全",
    yes="是的 可以 对 有的 好的 没错 能 有",
    no="不 没有 否",
    up="上升 增长 增加 上涨 提高 高于 涨 多",
    down="下降 减少 下跌 降低 低于 跌 少 降",
    approx="约 大约 左右 近 将近 超过 不到 以上 以下 多 余 大概",
    relative="今天 明天 昨天 现在 下周 上周 后天 前天 下个月 上个月 本周 本月 今日",
    secret="密码 秘密 令牌 密钥 验证码",
)
