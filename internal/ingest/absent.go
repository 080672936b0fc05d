package ingest

import (
	"context"
	"maps"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// An answer with 400, 404, 422 or 502 to a question about one number says one of two things: the service does not know
// this number, or the path to the whole vault is wrong. Only another question tells which. Until the vault has answered
// one, nothing is held against a document.

// settleUnknownNumbers finds out what such answers mean, after a round in which
// there were some. Something else is asked of the vault. If that is answered,
// everything that is still open in the round is asked about once more: a fault
// that has passed meanwhile blames nobody, and a number that fails again is
// absent. It returns what the list says, if it was read.
func (c *Engine) settleUnknownNumbers(ctx context.Context, vault archive.VaultID, es []ledger.Entry, q *questions) map[archive.RemoteID]archive.Receipt {
	if len(q.unknownNumbers) == 0 || q.isRefused() || ctx.Err() != nil {
		return nil
	}
	said, err := c.readList(ctx, vault)
	if err != nil && !c.answersForAnother(ctx, vault, q) {
		unknown := slices.Sorted(maps.Keys(q.unknownNumbers))
		q.fault = q.unknownNumbers[unknown[0]]
		return nil
	}
	for r := range q.unknownNumbers {
		if rc, is := said[r]; is {
			q.heard[r] = rc
		}
	}
	// Set before they are asked about again: from here on a number that fails so is absent.
	q.vaultAnswers, q.answered, q.row = true, true, 0
	c.askSingly(ctx, vault, es, q)
	return said
}

// answersForAnother reports whether the service answers now about the number of the vault that it answered last.
func (c *Engine) answersForAnother(ctx context.Context, vault archive.VaultID, q *questions) bool {
	r, known := c.statusLists.lastAnswered(vault)
	if _, isUnknown := q.unknownNumbers[r]; !known || isUnknown {
		return false
	}
	// A GET about a number that is certainly known: an answer shows that the path to the vault is right.
	_, err := c.asker().Status(ctx, vault, r)
	return err == nil
}

// lastAnswered returns the number of a vault that the service answered last; nothing is known after a start.
func (l *statusLists) lastAnswered(v archive.VaultID) (r archive.RemoteID, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known = l.last[v]
	return r, known
}

func (l *statusLists) noteAnswered(v archive.VaultID, r archive.RemoteID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[v] = r
}
