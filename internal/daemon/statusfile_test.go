package daemon

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/operator"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// That the service refuses the credentials is certain after its first answer: clerks read of it at once.
func TestStatusFile_I24_RefusedCredentialsAreToldAtOnce(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.pass()
		h.lost.Store(true)
		h.drop("Otto 19", "19", "one", false)
		for range 600 {
			if time.Sleep(time.Second); len(h.d.State().Pauses) > 0 {
				break
			}
		}
		pauses := h.d.State().Pauses
		kit.Need(t, len(pauses) == 1 && pauses[0].NeedsPerson(),
			"pauses = %+v, want one that needs an operator", pauses)
		time.Sleep(4 * time.Second) // a status file is written at most every three seconds
		synctest.Wait()
		kit.Holds(t, "status file", h.status(), "DELAYED since")
		age := time.Since(pauses[0].Since)
		kit.Check(t, age < 30*time.Second, "the status file was read %v after the first answer, want less than 30 s", age)
	})
}

// _STATUS.txt is new at least every five minutes, and shows a pause that lasts.
func TestStatusFile_TimeAndDelay(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.pass()
		path := filepath.Join(h.path, "_STATUS.txt")
		for range 100 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			_, stamp, _ := strings.Cut(strings.SplitN(h.status(), "\n", 2)[0], "acme-in")
			written, err := time.Parse("Mon 2 Jan 2006 15:04 MST", strings.TrimSpace(stamp))
			age := time.Since(written)
			kit.Need(t, err == nil && age <= 6*time.Minute, "the status file is %v old (error %v), want at most 6 minutes", age, err)
		}
		h.lost.Store(true)
		h.dropAndPass("Otto 19", "19", "one", false)
		kit.Holds(t, "status file", h.status(), "DELAYED since 01:0", "TAKEN, NOT YET ARCHIVED (1, newest first)\n  Otto 19               taken 01:0")
		h.lost.Store(false)
		h.pass()
		kit.Holds(t, "status file", h.status(), "ARCHIVED TODAY (1)")
		kit.Lacks(t, "status file", h.status(), "DELAYED")
		h.must(os.Remove(path))
		h.pass()
		_, err := os.Lstat(path)
		kit.Check(t, !errors.Is(err, os.ErrNotExist), "a removed status file did not come back, want it written again")
	})
}

// A folder that becomes late is in _STATUS.txt at once, although only the time
// has changed.
func TestStatusFile_ReminderIsOnTime(t *testing.T) {
	withDaemon(t, func(s *dropwork.Settings) { s.RemindAfter = 17 * time.Minute }, func(h *testDaemon) {
		h.must(os.Mkdir(filepath.Join(h.path, "Huber 88"), 0o770))
		for _, row := range []struct {
			after time.Duration
			want  string
		}{
			{2 * time.Minute, "NOT TAKEN YET (1)"},
			{14 * time.Minute, "NOT TAKEN YET (1)"},
			{2*time.Minute + 10*time.Second, "PLEASE FIX (1)"},
		} {
			time.Sleep(row.after)
			synctest.Wait()
			kit.Holds(t, "status file after "+row.after.String(), h.status(), row.want)
		}
	})
}

// The mark of an idle drop folder is read by the probe every half minute, and
// at each write of _STATUS.txt, every five minutes.
func TestStatusFile_AndMarkOfAnIdleDrop(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.pass()
		var marks, writes atomic.Int32
		count := durable.Hook(func(op, name string, do func() error) error {
			switch {
			case op == "statfs": // asked whenever the mark is read
				marks.Add(1)
			case op == "rename" && name == "_STATUS.txt":
				writes.Add(1)
			}
			return do()
		})
		h.files.Store(&count)
		time.Sleep(time.Hour)
		synctest.Wait()
		h.files.Store(nil)
		kit.Want(t, "writes of the status file in an hour", writes.Load(), 12)
		kit.Want(t, "readings of the mark in an hour", marks.Load(), 120+12)
	})
}

// I1: a person takes a folder again at the very moment of a reload. What was claimed has
// its entry before the drop folders are closed.
func TestReopen_I1_WhileAFolderIsTakenAgain(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("Huber 1", "INV-1", "content 1", true)
		old := h.becomes("Huber 1 rejected")[0]
		h.stop()
		h.must(<-h.ended)
		time.Sleep(commitInterval) // the ledger has just committed the last scan, and a commit waits so long for more

		renamed, goOn := make(chan struct{}), make(chan struct{})
		var met atomic.Bool
		var slow durable.Hook = func(op, name string, do func() error) error {
			err := do()
			if op == "rename" && name == "Huber 1" && met.CompareAndSwap(false, true) {
				close(renamed)
				<-goOn
			}
			return err
		}
		h.files.Store(&slow)
		type retried struct {
			e   ledger.Entry
			err error
		}
		again, reopened := make(chan retried, 1), make(chan error, 1)
		d := h.d
		go func() {
			e, err := d.Actions().Retry(t.Context(), old, operator.Person{UID: 1000})
			again <- retried{e, err}
		}()
		<-renamed
		go func() {
			next, err := d.Reopen(h.cfg)
			if err == nil {
				h.d = next
			}
			reopened <- err
		}()
		for began := monotonic(); monotonic()-began < 100_000_000 && len(reopened) == 0; { // real time: the bubble's stands still
			runtime.Gosched()
		}
		kit.Check(t, len(reopened) <= 0,
			"the drop folder was closed while a folder in it was taken again, want the reload to wait")
		close(goOn)
		r := <-again
		h.files.Store(nil)
		h.must(<-reopened)
		h.run()
		h.must(r.err)
		h.pass()
		if e, ok, err := h.d.Ledger().Entry(r.e.Key); err != nil || !ok || e.Supersedes != old.Key {
			t.Errorf("entry of the folder = %+v (known %t, error %v), want one that supersedes %s", e, ok, err, old.Key)
		}
		if e, _, err := h.d.Ledger().Entry(old.Key); err != nil || !e.Resolved {
			t.Errorf("the old entry = %+v (error %v), want it resolved", e, err)
		}
	})
}

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

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
	d, err := Open(t.Context(), cfg)
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
	kit.Check(t, err == nil && (a.State == arrival.Held || a.State == arrival.Acknowledged) && s.downloads.Load() == 1,
		"state = %v (error %v) after %d downloads, want held or acknowledged after 1", a.State, err, s.downloads.Load())
	// Twice: the second one goes on from the checkpoint of the first.
	for n := range 2 {
		checks := selfcheck.Verification{StateDir: cfg.StateDir, Program: "test", Now: time.Now}
		if v, err := checks.Verify(t.Context(), d.Ledger()); err != nil || !v.OK() || (n == 1) != (v.Basis != nil) {
			t.Errorf("verify %d: problems %v, findings %v (error %v), on a checkpoint: %t (%s, %v), want a good ledger, the second time on a checkpoint", n, v.Problems, v.Report.Findings, err, v.Basis != nil, v.NotUsed, v.NotSaved)
		}
	}
	kit.Must(t, d.Close())
}
