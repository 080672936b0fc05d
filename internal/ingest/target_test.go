package ingest

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// What people read is what they may type.
func TestTarget_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	key := archive.NewKey(time.Unix(1, 0))
	for want, target := range map[string]Target{
		"vault V-1":                      RegisterTarget("V-1"),
		"store of vault V-1":             UploadTarget("V-1"),
		"status of vault V-1":            AskTarget("V-1"),
		"drop acme-in":                   DropTarget("acme-in"),
		"disposal of acme-in":            DisposalTarget("acme-in"),
		"_archived/2026 of drop acme-in": PlaceTarget("_archived/2026", "acme-in"),
		"folder " + key.String():         FolderTarget(key),
		"spool":                          SpoolTarget(),
	} {
		if got := target.String(); got != want {
			t.Errorf("%+v is %q, want %q", target, got, want)
		}
		if got, err := ParseTarget(want); err != nil || got != target {
			t.Errorf("%q is %+v, %v", want, got, err)
		}
	}
	for _, words := range []string{"", "vault ", "drop", "folder x", "everything", " of drop "} {
		if got, err := ParseTarget(words); err == nil {
			t.Errorf("%q is %+v", words, got)
		}
	}
}

// The queues of a target are those that the ledger names.
func TestTarget_QueuesAreTheLedgers(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{Key: archive.NewKey(time.Unix(1, 0)), State: ledger.Discovered, Drop: "acme-in", Vault: "V-1"}
	if q := ledger.QueueOf(e); q != DropTarget(e.Drop).Queue() || targetOf(q) != DropTarget(e.Drop) || dropOf(q) != e.Drop {
		t.Errorf("queue %q", q)
	}
	e.State = ledger.Packaged
	if q := ledger.QueueOf(e); q != AskTarget(e.Vault).Queue() || targetOf(q) != RegisterTarget(e.Vault) || vaultOf(q) != e.Vault {
		t.Errorf("queue %q", q)
	}
}
