package daemon

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// oneExtract is a service that has one extract of one file.
type oneExtract struct {
	taken     chan archive.ExtractID
	downloads atomic.Int32
}

func (s *oneExtract) List(context.Context, string) (archive.ExtractList, error) {
	return archive.ExtractList{Whole: true, Extracts: []archive.Extract{{ID: "4711", Type: archive.DeltaExtract, Files: 1}}}, nil
}

func (s *oneExtract) Files(_ context.Context, id archive.ExtractID) ([]archive.ExtractFile, error) {
	return []archive.ExtractFile{{Extract: id, Table: "IA_INVOICE", Name: "a.json.gz", URL: "https://service.example/a"}}, nil
}

func (s *oneExtract) Download(_ context.Context, _ archive.ExtractFile, w io.Writer) (int64, error) {
	s.downloads.Add(1)
	z := gzip.NewWriter(w)
	_, err := io.WriteString(z, "[]")
	return 0, errors.Join(err, z.Close())
}

func (s *oneExtract) Definition(context.Context) (archive.TableDefinition, error) {
	return archive.TableDefinition{Raw: []byte("[]")}, nil
}

func (s *oneExtract) Acknowledge(_ context.Context, id archive.ExtractID, _ string) error {
	s.taken <- id
	return nil
}

// The daemon takes extracts in beside its documents, and a full check of its ledger passes after it. The file stays in the custody folder.
func TestDaemon_I30_TakesExtractsIn(t *testing.T) {
	t.Parallel()
	d, cfg := idle(t)
	kit.Must(t, d.Close())
	s := &oneExtract{taken: make(chan archive.ExtractID, 1)}
	cfg.Extracts = &Extracts{Service: s, Acknowledger: s, Custody: t.TempDir(), Every: time.Hour, Workers: 2, MaxDownloads: 10}
	d, err := Open(cfg)
	kit.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-s.taken:
	case err := <-ended:
		t.Fatalf("the daemon ended: %v, want it to work", err)
	case <-time.After(30 * time.Second):
		t.Fatal("no extract was taken in within 30 s, want one")
	}
	kit.Want(t, "acknowledged without a manifest",
		kit.Err(os.Stat(filepath.Join(cfg.Extracts.Custody, "extracts", "4711", "manifest.json"))), nil)
	stop()
	kit.Must(t, <-ended)
	a, _, err := d.Ledger().FindArrival(arrival.Extract, "4711")
	if err != nil || a.State != arrival.Held && a.State != arrival.Acknowledged || s.downloads.Load() != 1 {
		t.Errorf("state = %v (error %v) after %d downloads, want held or acknowledged after 1", a.State, err, s.downloads.Load())
	}
	// Twice: the second one goes on from the checkpoint of the first.
	for n := range 2 {
		checks := selfcheck.Verification{StateDir: cfg.StateDir, Program: "test", Now: time.Now}
		if v, err := checks.Verify(t.Context(), d.Ledger()); err != nil || !v.OK() || (n == 1) != (v.Basis != nil) {
			t.Errorf("verify %d: problems %v, findings %v (error %v), on a checkpoint: %t (%s, %v), want a good ledger, the second time on a checkpoint", n, v.Problems, v.Report.Findings, err, v.Basis != nil, v.NotUsed, v.NotSaved)
		}
	}
	kit.Must(t, d.Close())
}
