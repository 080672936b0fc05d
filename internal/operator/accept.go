package operator

import (
	"context"
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/recovery"
)

// FoundUnknown stands for the number of documents in an index that does not tell it.
const FoundUnknown = -1

// AcceptedIndex is a person's decision about a vault whose index cannot be read to its end: a walk that comes as far counts
// as complete, in the comparison that the person runs now and in no other.
type AcceptedIndex struct {
	Vault archive.VaultID
	Read  int // documents that the index gave
	Found int // documents that it says there are; FoundUnknown: it does not say
}

// coversWalk reports whether the decision holds for a walk: it read as much at least, and lacks no more. The index of a vault
// that is in use may have grown since the person saw the numbers.
func (a AcceptedIndex) coversWalk(v recovery.VaultReport) bool {
	read, found := v.Index.Read, v.Index.Found
	if a.Found == FoundUnknown || found == FoundUnknown {
		return a.Vault == v.Vault && a.Found == found && read >= a.Read
	}
	return a.Vault == v.Vault && read >= a.Read && found-read <= a.Found-a.Read
}

// asWalk is the walk that the person saw.
func (a AcceptedIndex) asWalk() recovery.VaultReport {
	return recovery.VaultReport{Vault: a.Vault, Index: archive.IndexResult{Read: a.Read, Found: a.Found}}
}

// acceptIndex returns the function that lets an incomplete index count as complete where the person decided so. It journals the
// numbers of the walk before anything is concluded from it. Nil: the person decided nothing.
func (c Comparison) acceptIndex(p Person) func(context.Context, recovery.VaultReport) (bool, error) {
	if len(c.Accept) == 0 {
		return nil
	}
	return func(ctx context.Context, v recovery.VaultReport) (bool, error) {
		for _, a := range c.Accept {
			if !a.coversWalk(v) {
				continue
			}
			by, note := p.Sign()
			// A crash after this commit leaves the mark alone: the next comparison concludes nothing from the index
			// until it is accepted again.
			err := c.Ledger.CommitMark(ctx, ledger.Mark{Name: ledger.MarkIndex, Vault: v.Vault, By: by, At: c.Now().Wall, Cause: v.DescribeIndex()}, note)
			return err == nil, err
		}
		return false, nil
	}
}

// Complete reports whether every index was read to its end, or a person let it count as complete.
func (c Compared) Complete() bool {
	for _, v := range c.Vaults {
		if !v.IsConclusive() {
			return false
		}
	}
	return true
}

// Incomplete says of each index that was not read to its end how far the walk came, and what to do.
func (c Compared) Incomplete(accept []AcceptedIndex) (why []string) {
	stays := ""
	if c.Safe {
		stays = "; safe mode stays"
	}
	for _, v := range c.Vaults {
		if v.IsConclusive() {
			continue
		}
		text := fmt.Sprintf("Vault %s: the index gave %s. Nothing is concluded from it%s. Run reconcile again; if it lasts, show the provider request %s.",
			v.Vault, v.DescribeIndex(), stays, v.Index.Request)
		for _, a := range accept {
			if a.Vault == v.Vault {
				text += fmt.Sprintf(" It is not accepted: --accept-index names %s.", a.asWalk().DescribeIndex())
			}
		}
		why = append(why, text)
	}
	return why
}
