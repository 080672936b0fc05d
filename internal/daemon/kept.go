package daemon

import (
	"context"
	"fmt"

	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

// compareKept compares a folder that is about to be kept with what was archived: its receipt must not say of it what is not true. What was
// archived is certain: those bytes were packed. Other folders are not compared.
func (r *room) compareKept(ctx context.Context, f *drop.Folder, e ledger.Entry, doc ledger.Document) ([]drop.Difference, error) {
	if e.Source != ledger.Keeping || len(doc.Files) == 0 { // found in the archive's index: nothing is known to compare with
		return nil, nil
	}
	return f.FindDifferences(ctx, claimed(e), e.Dest, r.contents(doc))
}

const namedDifferences = 5

// differCause says which files of a kept folder are not what was archived.
func differCause(differs []drop.Difference) ledger.Cause {
	text := "the folder changed after it was packed, and the archive has what was packed:"
	for i, d := range differs {
		if i == namedDifferences {
			text += fmt.Sprintf(" and %d more;", len(differs)-i)
			break
		}
		text += fmt.Sprintf(" %q %s;", d.Path, d.What)
	}
	return ledger.Cause{Code: ledger.CauseSourceChanged, Text: text + " the folder stays where it is kept, and is never removed by itself"}
}
