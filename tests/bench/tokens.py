"""`python -m tests.bench.tokens claude.json`: how far our count is from a provider's, by kind of text.

Claude's current tokenizer is not public. What can be had is the one that Anthropic published for its second generation,
`claude.json` of the npm package `@anthropic-ai/tokenizer` 0.0.4: fetch it and pass its path. The table gives, for each
kind of text, the provider's tokens per token of ours (the factor that would be needed), and what remains of an
undercount with the initial factor, and after one correction by a turn of that kind.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from base64 import b64decode
from pathlib import Path

from tiktoken import Encoding

from octopus.cloud.tokens import count_tokens
from octopus.settings import Settings
from octopus.working.token_factor import corrected

ROOT = Path(__file__).parent.parent.parent
KANJI = "東京の営業部では、四月から新しい経費精算の手続きが始まります。領収書は三十日以内に提出してください。"
HANZI = "公司规定每位员工每年享有二十八天带薪年假，未使用的假期最多可以结转五天。"
HANGUL = "직원은 매년 이십팔 일의 유급 휴가를 사용할 수 있으며 휴가 신청은 이 주 전에 해야 합니다."
CYRILLIC = "Каждый сотрудник имеет право на двадцать восемь дней оплачиваемого отпуска в год."
ARABIC = "يحق لكل موظف الحصول على ثمانية وعشرين يوما من الإجازة السنوية المدفوعة."
EMOJI = "🎉👍🏽 thanks!! 😂😂 see you 👩‍👩‍👧‍👦 at 🏖️ ✈️🇳🇴 ❤️‍🔥 "


def corpus() -> dict[str, str]:
    """Kinds of text, from this repository where it has them."""
    code = "\n".join(path.read_text() for path in sorted((ROOT / "shared" / "octopus").glob("*.py")))
    table = "\n".join(
        f"| {n} | item-{n * 37 % 101} | {n * 1.25:.2f} | 2026-0{n % 9 + 1}-1{n % 10} |" for n in range(300)
    )
    return {
        "prose": (ROOT / "LICENSE").read_text(),
        "markdown": (ROOT / "CONTRIBUTING.md").read_text(),
        "code": code,
        "sql": (ROOT / "infra" / "migrations" / "0001_initial.sql").read_text(),
        "table": table,
        "json": json.dumps([{"id": n, "name": f"vendor {n}", "active": n % 2 == 0} for n in range(300)]),
        "japanese": KANJI * 30,
        "chinese": HANZI * 30,
        "korean": HANGUL * 30,
        "russian": CYRILLIC * 30,
        "arabic": ARABIC * 30,
        "emoji": EMOJI * 60,
    }


def published(path: Path) -> Encoding:
    """The tokenizer of `claude.json`."""
    data = json.loads(path.read_text())
    _, offset, *tokens = data["bpe_ranks"].split(" ")
    ranks = {b64decode(token): rank for rank, token in enumerate(tokens, int(offset))}
    return Encoding("claude", pat_str=data["pat_str"], mergeable_ranks=ranks, special_tokens=data["special_tokens"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claude_json", type=Path)
    encoding = published(parser.parse_args().claude_json)
    initial = Settings(_env_file=None).model_token_factor
    print(
        f"{'kind':<12}{'ours':>8}{'provider':>10}{'factor':>9}{'undercount':>13}{'corrected':>12}   (initial {initial})"
    )
    for kind, text in corpus().items():
        ours, theirs = count_tokens(text), len(encoding.encode_ordinary(unicodedata.normalize("NFKC", text)))
        factor = theirs / ours
        first = max(0.0, 1 - initial / factor)
        later = max(0.0, 1 - corrected(initial, factor) / factor)
        print(f"{kind:<12}{ours:>8}{theirs:>10}{factor:>9.2f}{first:>13.1%}{later:>12.1%}")


if __name__ == "__main__":
    main()
