package arrival

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// NewLine returns the journal line that tells of ev, which made after.
func NewLine(n uint64, after Arrival, ev Event, at archive.Instant) ledger.Line {
	l := ledger.NewArrivalLine(n, ev.JournalName(), after.Key, after.Rev, after.State.String(), at.Wall)
	l.Kind, l.Item, l.Cause = string(after.Kind), string(after.Item), after.Cause.Code
	switch ev := ev.(type) {
	case DownloadIntended:
		l.File, l.Downloads = ev.File, uint32(after.findFile(ev.File).Downloads)
	case FileHeld:
		l.File, l.Seal, l.Size = ev.File, ev.SHA256.String(), ev.Size
	case FileDoubted:
		l.File, l.Seal = ev.File, ev.SHA256.String()
	case DoubtOverruled:
		l.File, l.Seal = ev.File, ev.SHA256.String()
	case DocumentHeld:
		l.Seal, l.Size, l.Files = ev.SHA256.String(), ev.Size, uint32(len(after.Files))
	case HeldWhole:
		l.Seal, l.Files = ev.Manifest.String(), uint32(len(after.Files))
	case Adopted:
		l.Seal, l.Files = ev.Manifest.String(), uint32(len(after.Files))
	case FilesListed, HandedOn:
		l.Files = uint32(len(after.Files))
	case WordIntended:
		l.Status = ev.Word.Pair()
		if ev.Tell {
			l.Flags = "told" // what leaves cannot be erased where it goes
		}
	case WordAnswered:
		l.Status, l.Cause = after.findSaid(ev.Intent).Word.Pair(), ev.Cause.Code
	}
	if by, ok := ActorOf(ev); ok {
		l.SetOperator(by)
	}
	return l
}
