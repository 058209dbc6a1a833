"""``manage.py verify_audit``: whether the record is as it was written; names the first break of each chain."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, transaction
from django.utils import timezone

from decisions.models import Chain, Cluster
from decisions.services import verification
from decisions.services.verification import Head, Verified


class Command(BaseCommand):
    """May run beside everything else, and against a copy of the database. Exit code 1: something is wrong."""

    help = "Check the record's chains of hashes, and that no tail is missing since a head was kept."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """``verify_audit [--cluster NAME] [--head FILE] [--export-head FILE]``."""
        parser.add_argument("--cluster", help="Only this cluster's chain.")
        parser.add_argument(
            "--head",
            type=Path,
            metavar="FILE",
            help="Heads kept before: an export, or a log of standard output.",
        )
        parser.add_argument(
            "--export-head",
            type=Path,
            metavar="FILE",
            help="Write the heads there if all is whole (-: print).",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check, say what was found, export."""
        kept = _kept(options["head"])
        chains = [_chain_of(options["cluster"])] if options["cluster"] else verification.names(kept)
        found = [self._verify(chain, kept) for chain in chains]
        broken = sum(each.broken is not None for each in found)
        others = self._other_problems()
        total = f"{sum(each.entries for each in found)} entries of {len(found)} chains checked"
        if broken or others:
            raise CommandError(f"{total}: {broken} chains are broken, {others} other problems.")
        self._export(found, options["export_head"])
        self.stdout.write(f"{total}: all as they were written.")

    def _verify(self, chain: str, kept: Mapping[str, Head]) -> Verified:
        found = verification.verify(chain, kept.get(chain))
        if found.broken is None:
            against = f", held against entry {kept[chain].seq}" if chain in kept else ""
            self.stdout.write(f"{_named(chain)}: {found.entries} entries, head {found.hash[:16]}{against}.")
            self._note(found)
        else:
            wrong = found.broken
            self.stdout.write(
                f"{_named(chain)}: broken at entry {wrong.seq}, {wrong.wrong}: {wrong.sentence}."
            )
        return found

    def _note(self, found: Verified) -> None:
        try:
            with transaction.atomic():
                verification.note(found, now=timezone.now())
        except DatabaseError:
            self.stderr.write("The settings page will not show this check: the database takes no writes.")

    def _other_problems(self) -> int:
        sentences = verification.without_head()
        if missing := verification.without_guard():
            sentences.append(f"triggers that keep the record append-only are gone: {', '.join(missing)}")
        for sentence in sentences:
            self.stdout.write(f"Wrong: {sentence}.")
        return len(sentences)

    def _export(self, found: Sequence[Verified], target: Path | None) -> None:
        if target is None:
            return
        lines = "".join(f"{line}\n" for line in verification.export(found, now=timezone.now()))
        if str(target) == "-":
            self.stdout.write(lines, ending="")
            return
        try:
            target.write_text(lines, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}.") from error


def _kept(source: Path | None) -> dict[str, Head]:
    if source is None:
        return {}
    try:
        with source.open(encoding="utf-8", errors="replace") as lines:
            kept = verification.kept_heads(lines)
    except OSError as error:
        raise CommandError(f"{source} cannot be read: {error.strerror}.") from error
    if not kept:
        raise CommandError(f"{source} has no head: neither an export nor a line of the record.")
    return kept


def _chain_of(name: str) -> str:
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise CommandError(f"There is no cluster {name}.")
    return Chain.name_for(cluster.pk)


def _named(chain: str) -> str:
    """A chain's name, and that of its cluster, which a person knows."""
    cluster = Cluster.objects.filter(pk=int(chain.partition(":")[2] or 0)).first() if ":" in chain else None
    return f"{chain} ({cluster})" if cluster else chain
