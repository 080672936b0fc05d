package present

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// DescribePause says why the circuit breaker of a target is open: first how long the service asks to wait or what its answer
// means, then what was wrong.
func DescribePause(c Clock, p ingest.Pause) string {
	switch meaning := meaningOf(p); {
	case c.Now.Before(p.Asked):
		return "the service asks us to slow down until " + c.Brief(p.Asked) + ": " + p.Cause.Text
	case meaning != "":
		return meaning + ": " + p.Cause.Text
	}
	return p.Cause.Text
}

// DescribeNextTry says when a target is tried again; empty when only a person ends the pause.
func DescribeNextTry(c Clock, next *time.Time) string {
	if next == nil {
		return ""
	}
	return "; next try " + c.Zoned(*next)
}

// AdviseOnTakeover says what to do with a vaultd whose ledger goes on elsewhere.
func AdviseOnTakeover(epoch uint64) string {
	return fmt.Sprintf("another vaultd has taken over this ledger's drop folders (epoch %d): leave this one stopped (docs/recovery.md)", epoch)
}

// AdviseOnLostLedger says what to do about a ledger that was lost while vaultd
// runs.
const AdviseOnLostLedger = "do not stop vaultd: what it has open is in no file of state_dir. Save it now: vaultd backup FILE. " +
	"Move away what is in the place of ledger.db or ledger.head.*; vaultd then puts its own copy there, ends and starts again (docs/recovery.md)"

// DescribeSafeMode says in a few words why a ledger is in safe mode.
func DescribeSafeMode(s ledger.SafeMode) string {
	words := map[string]string{
		ledger.MarkRestored:   "the ledger was put back from a backup",
		ledger.MarkRebuilt:    "the ledger was made anew from what lies in the folders",
		ledger.MarkRolledBack: "the ledger is older than what was written outside it",
		ledger.MarkDamaged:    "the check found damage in the ledger",
	}[s.Mark]
	words = cmp.Or(words, s.Mark)
	if s.Cause != "" {
		words += ": " + strings.TrimSuffix(s.Cause, ".")
	}
	return words
}
