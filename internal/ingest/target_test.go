package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// The name of a target that users read is the one that they may type.
func TestTarget_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	key := archive.NewKey(time.Unix(1, 0))
	for name, target := range map[string]ingest.Target{
		"vault V-1":                      ingest.RegisterTarget("V-1"),
		"store of vault V-1":             ingest.UploadTarget("V-1"),
		"status of vault V-1":            ingest.AskTarget("V-1"),
		"drop acme-in":                   ingest.DropTarget("acme-in"),
		"disposal of acme-in":            ingest.DisposalTarget("acme-in"),
		"_archived/2026 of drop acme-in": ingest.PlaceTarget("_archived/2026", "acme-in"),
		"folder " + key.String():         ingest.FolderTarget(key),
		"spool":                          ingest.SpoolTarget(),
	} {
		kit.Want(t, "name", target.String(), name)
		got, err := ingest.ParseTarget(name)
		if err != nil {
			t.Errorf("ParseTarget(%q) failed: %v", name, err)
		}
		kit.Want(t, "target of "+name, got, target)
	}
	for _, name := range []string{"", "vault ", "drop", "folder x", "everything", " of drop "} {
		kit.Fails(t, fmt.Sprintf("ParseTarget(%q)", name), kit.Err(ingest.ParseTarget(name)))
	}
}

// The queue of a target is the one that the ledger names.
func TestTarget_QueuesAreTheLedgers(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{Key: archive.NewKey(time.Unix(1, 0)), State: ledger.Discovered, Drop: "acme-in", Vault: "V-1"}
	kit.Want(t, "queue of a drop", ingest.DropTarget(e.Drop).Queue(), ledger.QueueOf(e))
	e.State = ledger.Packaged
	kit.Want(t, "queue of a vault", ingest.AskTarget(e.Vault).Queue(), ledger.QueueOf(e))
}
