package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
	"vaultd/internal/watch"
)

const service = "https://archive.example"

// testDaemon is one daemon with one drop folder, in a bubble of virtual time.
type testDaemon struct {
	t    *testing.T
	path string
	d    *Daemon
	lost atomic.Bool // the service refuses the credentials
	log  kit.Text

	cfg   Config
	stop  context.CancelFunc
	ended chan error
	files atomic.Pointer[durable.Hook] // what befalls the disk

	client *vaultapi.Client
	emu    *emulator.Server
}

func withDaemon(t *testing.T, change func(*dropwork.Settings), test func(h *testDaemon)) {
	withConfiguredDaemon(t, func(c *Config) {
		if change != nil {
			change(&c.Drops[0])
		}
	}, test)
}

// withConfiguredDaemon runs a test together with others.
func withConfiguredDaemon(t *testing.T, change func(*Config), test func(h *testDaemon)) {
	t.Parallel()
	inBubble(t, change, test)
}

func inBubble(t *testing.T, change func(*Config), test func(h *testDaemon)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := &testDaemon{t: t, path: filepath.Join(dir, "in")}
		h.must(os.Mkdir(h.path, 0o770))
		h.must(os.Mkdir(filepath.Join(dir, "state"), 0o700))
		h.must(boltledger.Create(filepath.Join(dir, "state"), ledger.Info{ID: "L-1", Environment: "test", BaseURL: service, Schema: boltledger.Schema, Created: time.Now()}))
		emu, err := emulator.New(emulator.Config{Dir: filepath.Join(dir, "emulator"), Clock: time.Now, StoreURL: func() string { return "https://store.example/p" },
			Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}, ArchiveMin: time.Minute, ArchiveMax: time.Minute,
			Extracts: emulator.Extracts{Account: booksAccount}})
		h.must(err)
		defer func() { h.must(emu.Close()) }()
		began := time.Now()
		now := func() archive.Instant {
			return archive.Instant{Wall: time.Now(), Boot: time.Since(began), BootID: "boot"}
		}
		api, store, err := apicall.New(apicall.Config{BaseURL: service, Transport: emu.Transport(), Now: time.Now,
			Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) {
				if h.lost.Load() {
					return "renewed elsewhere", nil
				}
				return "s", nil
			}}})
		h.must(err)
		h.client = vaultapi.New(vaultapi.Config{API: api, Store: store, Now: now})
		h.emu = emu
		drop := dropwork.Settings{Name: "acme-in", Path: h.path, Vault: "V", Rules: packager.Rules{Sidecar: "metadata.json", Compression: "fast"},
			Mode: watch.Poll, Settle: 30 * time.Second, Rescan: time.Minute}
		h.cfg = Config{StateDir: filepath.Join(dir, "state"), Environment: "test", BaseURL: service, Location: time.UTC,
			Vault: h.client, Archive: h.client, Now: now, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
			SpoolMax: 20_000_000_000, SpoolMinFree: 1, Workers: 8, BatchSize: 50, BatchWait: time.Second,
			PollMin: time.Minute, PollMax: 10 * time.Minute, Grace: 24 * time.Hour, Drops: []dropwork.Settings{drop}, FileFault: h.file}
		change(&h.cfg)
		h.d, err = Open(h.t.Context(), h.cfg)
		h.must(err)
		h.run()
		defer func() {
			h.stop()
			h.must(<-h.ended)
			h.must(h.d.Close())
			if t.Failed() {
				t.Log(h.log.String())
			}
		}()
		test(h)
	})
}

// withoutLeases makes the drop folder one where the kernel does not tell which
// files are open, as a network drive is.
func withoutLeases(c *Config) {
	files := c.FileFault
	c.FileFault = func(op, name string, do func() error) error {
		if op == "statfs" {
			return errors.Join(do(), syscall.EIO)
		}
		return files(op, name, do)
	}
}

// run lets the daemon work.
func (h *testDaemon) run() {
	ctx, cancel := context.WithCancel(h.t.Context())
	h.stop, h.ended = cancel, make(chan error, 1)
	go func(d *Daemon, ended chan<- error) { ended <- d.Run(ctx) }(h.d, h.ended)
}

func (h *testDaemon) file(op, name string, do func() error) error {
	if f := h.files.Load(); f != nil {
		return (*f)(op, name, do)
	}
	return do()
}

func (h *testDaemon) must(err error) {
	h.t.Helper()
	kit.Must(h.t, err)
}

// drop makes a folder; bad makes a sidecar that is refused.
func (h *testDaemon) drop(folder, number, content string, bad bool) {
	h.t.Helper()
	dir := filepath.Join(h.path, folder)
	amount := "119.00"
	if bad {
		amount = `"1.234,56"`
	}
	h.must(os.MkdirAll(dir, 0o770))
	h.must(os.WriteFile(filepath.Join(dir, "rechnung.pdf"), []byte(content), 0o660))
	h.must(os.WriteFile(filepath.Join(dir, "metadata.json"), fmt.Appendf(nil,
		`{"documentType": "Invoice", "documentId": %q, "documentDate": "1999-10-31", "senderName": "Huber KG", "amount": %s}`, number, amount), 0o660))
}

// dropWithout drops a folder without a sidecar.
func (h *testDaemon) dropWithout(folder, content string) {
	h.t.Helper()
	h.drop(folder, "", content, false)
	h.must(os.WriteFile(filepath.Join(h.path, folder, "metadata.json"), []byte("{"), 0o660))
}

// pass lets time go by until everything that can end has ended.
func (h *testDaemon) pass() {
	time.Sleep(15 * time.Minute)
	synctest.Wait()
}

func (h *testDaemon) status() string {
	h.t.Helper()
	text := kit.Value(os.ReadFile(filepath.Join(h.path, "_STATUS.txt")))(h.t)
	return strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
}

// entries gives "folder state" of each, and "resolved" where nobody needs to look any more, in the order of the claims.
func (h *testDaemon) entries() (words []string, all []ledger.Entry) {
	h.t.Helper()
	h.must(h.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
		w := e.Folder + " " + e.State.String()
		if e.Resolved {
			w += " resolved"
		}
		words, all = append(words, w), append(all, e)
		return nil
	}))
	return words, all
}

func (h *testDaemon) want(words ...string) []ledger.Entry {
	h.t.Helper()
	got, all := h.entries()
	kit.Want(h.t, "entries", got, words)
	return all
}

// dropAndPass drops a folder, and lets time go by.
func (h *testDaemon) dropAndPass(folder, number, content string, bad bool) {
	h.t.Helper()
	h.drop(folder, number, content, bad)
	h.pass()
}

// becomes lets time go by, and wants the entries to be these.
func (h *testDaemon) becomes(words ...string) []ledger.Entry {
	h.t.Helper()
	h.pass()
	return h.want(words...)
}

// What is dropped again resolves what came back by its content, never by its name or place.
func TestDrop_I1_CorrectionResolvesAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	rejected := func(names ...string) string { return filepath.Join(append([]string{"_rejected"}, names...)...) }
	type row struct {
		again func(h *testDaemon)
		want  []string
	}
	kit.Rows(t, map[string]row{
		"MovedBack": {func(h *testDaemon) {
			h.must(os.Rename(filepath.Join(h.path, rejected("Huber 88")), filepath.Join(h.path, "Huber 88")))
			h.drop("Huber 88", "88", "one", false)
		}, []string{"Huber 88 rejected resolved", "Huber 88 archived"}},
		"MovedBackAndRenamed": {func(h *testDaemon) {
			h.must(os.Rename(filepath.Join(h.path, rejected("Huber 88")), filepath.Join(h.path, "HUBER 88")))
			h.drop("HUBER 88", "88", "one", false)
		}, []string{"Huber 88 rejected resolved", "HUBER 88 archived"}},
		"CopiedBackThenRemoved": {func(h *testDaemon) {
			h.must(exec.Command("rm", "-r", filepath.Join(h.path, rejected("Huber 88"))).Run())
			h.drop("Huber 88", "new number", "other file", false)
		}, []string{"Huber 88 rejected", "Huber 88 archived"}},
		"CorrectedElsewhere": {func(h *testDaemon) {
			h.must(exec.Command("rm", "-r", filepath.Join(h.path, rejected("Huber 88"))).Run())
			h.drop("Corrected", "88", "other file", false)
		}, []string{"Huber 88 rejected resolved", "Corrected archived"}},
		"FilesUnderAnotherName": {func(h *testDaemon) {
			h.must(exec.Command("rm", "-r", filepath.Join(h.path, rejected("Huber 88"))).Run())
			h.dropWithout("Corrected", "one")
		}, []string{"Huber 88 rejected resolved", "Corrected rejected"}},
		"ExportedAgain": {func(h *testDaemon) { h.drop("Huber 88", "88", "a new rendering", false) },
			[]string{"Huber 88 rejected resolved", "Huber 88 archived"}},
		"AnotherFolderRemovedAndReplaced": {func(h *testDaemon) {
			h.must(exec.Command("rm", "-r", filepath.Join(h.path, rejected("Huber 88"))).Run())
			h.drop("Huber 88", "R-200", "another", false)
		}, []string{"Huber 88 rejected", "Huber 88 archived"}},
		"SameInodeOtherContent": {func(h *testDaemon) {
			h.must(os.Rename(filepath.Join(h.path, rejected("Huber 88")), filepath.Join(h.path, "Huber 88")))
			h.drop("Huber 88", "R-200", "another", false)
		}, []string{"Huber 88 rejected", "Huber 88 archived"}},
		"OtherSender": {func(h *testDaemon) {
			h.drop("Otto 88", "88", "another", false)
			h.must(os.WriteFile(filepath.Join(h.path, "Otto 88", "metadata.json"), []byte(`{"documentType": "Invoice", "documentId": "88", "documentDate": "1999-10-31", "senderName": "Otto KG", "amount": 1}`), 0o660))
		}, []string{"Huber 88 rejected", "Otto 88 archived"}},
		"MoreFiles": {func(h *testDaemon) {
			h.dropWithout("Huber 88 komplett", "one")
			h.must(os.WriteFile(filepath.Join(h.path, "Huber 88 komplett", "anlage.pdf"), []byte("two"), 0o660))
		}, []string{"Huber 88 rejected resolved", "Huber 88 komplett rejected"}},
		"AnotherInvoiceOfThatName": {func(h *testDaemon) { h.drop("Huber 88", "89", "one", false) },
			[]string{"Huber 88 rejected", "Huber 88 archived"}},
		"WrongAgain": {func(h *testDaemon) {
			h.must(os.Rename(filepath.Join(h.path, rejected("Huber 88")), filepath.Join(h.path, "Huber 88")))
			h.drop("Huber 88", "88", "one", true)
		}, []string{"Huber 88 rejected resolved", "Huber 88 rejected"}},
	}, func(t *testing.T, row row) {
		withDaemon(t, nil, func(h *testDaemon) {
			h.drop("Huber 88", "88", "one", true)
			h.becomes("Huber 88 rejected")
			row.again(h)
			all := h.becomes(row.want...)
			if resolved := all[0].Resolved; resolved != (all[1].Supersedes == all[0].Key) {
				t.Errorf("resolved = %v, want it exactly where the new entry supersedes the old one; it supersedes %v", resolved, all[1].Supersedes)
			}
			if fix := strings.Contains(h.status(), "PLEASE FIX (1)"); fix != !(all[0].Resolved && all[1].State == ledger.Archived) {
				t.Errorf("status file asks for a fix: %t, want it unless the invoice is resolved and archived:\n%s", fix, h.status())
			}
		})
	})
}

// I12, I26: a rejected folder that was removed, renamed or emptied is reported as
// missing since then, and stays open until its content comes back. One that is put
// back is not missing.
func TestDrop_I12_I26_RejectedFolderIsGone(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]func(at string) error{
		"Removed": func(at string) error { return os.RemoveAll(at) },
		"Renamed": func(at string) error { return os.Rename(at, at+" erledigt") },
		"Emptied": func(at string) error {
			return errors.Join(os.Remove(filepath.Join(at, "rechnung.pdf")), os.Remove(filepath.Join(at, "metadata.json")))
		},
		"Replaced": func(at string) error { return errors.Join(os.Rename(at, at+" erledigt"), os.Mkdir(at, 0o770)) },
	}, func(t *testing.T, remove func(at string) error) {
		withDaemon(t, nil, func(h *testDaemon) {
			h.drop("Huber 88", "88", "one", true)
			key := h.becomes("Huber 88 rejected")[0].Key
			at := filepath.Join(h.path, "_rejected", "Huber 88")
			h.must(os.Rename(at, at+" aside"))
			h.pass()
			h.must(os.Rename(at+" aside", at))
			h.pass()
			kit.Want(t, "missing after it was put back", len(h.d.State().Drops[0].Scan.Missing), 0)
			h.must(remove(at))
			gone := time.Now()
			h.pass()
			scans := kit.Value(h.d.Ledger().Scans())(h.t)
			since := scans[0].MissingSince(key)
			kit.Check(t, !since.Before(gone) && since.Sub(gone) <= time.Minute, "missing since %v, want within a minute of %v", since, gone)
			kit.Holds(t, "the status file", h.status(), "PLEASE FIX (1)", "Huber 88 ", "PLEASE CHECK: no longer in _rejected since ")
			h.want("Huber 88 rejected")
			h.drop("korrigiert", "88", "two", false)
			h.becomes("Huber 88 rejected resolved", "korrigiert archived")
			kit.Want(t, "missing once resolved", len(h.d.State().Drops[0].Scan.Missing), 0)
			kit.Lacks(t, "the status file", h.status(), "PLEASE FIX")
		})
	})
}

// I12: files that other folders hold too, such as a logo, resolve no rejection.
func TestDrop_I12_SharedFilesResolveNothing(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropAndPass("Huber 87", "87", "logo", false)
		h.dropWithout("Huber 88", "logo")
		h.pass()
		h.dropWithout("Otto 1", "logo")
		all := h.becomes("Huber 87 archived", "Huber 88 rejected", "Otto 1 rejected")
		h.must(os.WriteFile(filepath.Join(h.path, all[1].Dest, "scan.pdf"), []byte("its own"), 0o660))
		h.must(os.Rename(filepath.Join(h.path, all[1].Dest), filepath.Join(h.path, "Huber 88")))
		h.becomes("Huber 87 archived", "Huber 88 rejected", "Otto 1 rejected", "Huber 88 rejected")
		// From now on a file of its own is known, whatever else comes with it.
		h.dropWithout("Huber", "logo")
		h.must(os.WriteFile(filepath.Join(h.path, "Huber", "scan 2.pdf"), []byte("its own"), 0o660))
		h.becomes("Huber 87 archived", "Huber 88 rejected", "Otto 1 rejected", "Huber 88 rejected resolved", "Huber rejected")
	})
}

// A file system that was mounted again has another device: its mark tells that it is the right one. Another's is not touched.
func TestDrop_I16_RightFolderComesBack(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropAndPass("Otto 19", "19", "one", false)
		aside := h.path + ".aside"
		h.must(os.Rename(h.path, aside))
		h.must(os.Mkdir(h.path, 0o770)) // the empty mount point
		h.drop("Below 1", "1", "below the mount point", false)
		h.becomes("Otto 19 archived")
		s := h.d.State().Drops[0]
		kit.Check(t, s.Paused != "" && s.Watch.Paused != nil, "drop = %+v, want it paused", s)
		kit.Fails(t, "a status file was written into another folder",
			kit.Err(os.Lstat(filepath.Join(h.path, "_STATUS.txt"))))
		kit.Fails(t, "another folder was marked as ours", kit.Err(os.Lstat(filepath.Join(h.path, ".vaultd"))))
		h.must(os.Rename(h.path, h.path+".wrong"))
		h.must(exec.Command("cp", "-a", aside, h.path).Run()) // other inodes, the same mark
		foreign := []byte(`{"ledger":"L-2","environment":"test","epoch":1}`)
		mark := filepath.Join(h.path, ".vaultd/drop.json")
		ours := kit.Value(os.ReadFile(mark))(h.t)
		h.must(os.WriteFile(mark, foreign, 0o600))
		h.drop("Kern 6", "6", "two", false)
		h.becomes("Otto 19 archived")
		kit.Holds(t, "reason of the pause", h.d.State().Drops[0].Paused, "another ledger")
		h.must(os.WriteFile(mark, ours, 0o600))
		h.becomes("Otto 19 archived", "Kern 6 archived")
		s = h.d.State().Drops[0]
		kit.Check(t, s.Paused == "" && s.Watch.Paused == nil, "drop = %+v, want no pause", s)
		kit.Holds(t, "status file", h.status(), "ARCHIVED TODAY (2)")
	})
}

// The mark is read before each claim: a folder that another vaultd has taken
// over is left alone, even before an inspection has met the new mark.
func TestDrop_I16_MarkIsReadBeforeAClaim(t *testing.T) {
	withDaemon(t, func(s *dropwork.Settings) { s.Settle = 40 * time.Second }, func(h *testDaemon) {
		time.Sleep(10 * time.Second)
		h.drop("Otto 19", "19", "one", false) // seen at the rescan after a minute, settled 40 seconds later
		time.Sleep(85 * time.Second)          // the probe inspects at 90 seconds and at 120
		mark := filepath.Join(h.path, ".vaultd/drop.json")
		ours := kit.Value(os.ReadFile(mark))(h.t)
		h.must(os.WriteFile(mark, []byte(`{"ledger":"L-2","environment":"test","epoch":1}`), 0o600))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		kit.Want(t, "claimed from a folder of another ledger", kit.Err(os.Lstat(filepath.Join(h.path, "Otto 19"))), nil)
		kit.Holds(t, "paused", h.d.State().Drops[0].Paused, "another ledger")
		h.must(os.WriteFile(mark, ours, 0o600))
		h.becomes("Otto 19 archived")
	})
}

// A drop folder that can only be read is paused: status, log and health say so with the way out, and it goes on by itself.
func TestDrop_I24_TurnsReadOnly(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropAndPass("Otto 19", "19", "one", false)
		readOnly := durable.Hook(func(op, _ string, do func() error) error {
			if op == "statfs" {
				return syscall.EROFS
			}
			return do()
		})
		h.files.Store(&readOnly)
		h.drop("Kern 6", "6", "two", false)
		h.becomes("Otto 19 archived")
		s := h.d.State().Drops[0]
		kit.Holds(t, "reason of the pause", s.Paused, "is read-only for vaultd: nothing can be taken from it, and its _STATUS.txt is old")
		kit.Holds(t, "advice", s.Do, "ReadWritePaths="+h.path)
		kit.Want(t, "log lines about the pause", strings.Count(h.log.String(), "msg=\"drop paused\""), 1)
		kit.Holds(t, "log", h.log.String(), "systemctl edit vaultd")
		h.files.Store(nil)
		h.becomes("Otto 19 archived", "Kern 6 archived")
		s = h.d.State().Drops[0]
		kit.Want(t, "reason of a pause, and advice", s.Paused+s.Do, "")
		kit.Holds(t, "log", h.log.String(), "drop works again")
	})
}

// complete: list and marker from the drop to the archive, with what is missing named on the way, and polling said so.
func TestDrop_CompleteByListAndMarker(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.Drops[0].Rules.Complete = "list" }, func(h *testDaemon) {
		dir := filepath.Join(h.path, "Wagner 5")
		h.must(os.Mkdir(dir, 0o770))
		h.must(os.WriteFile(filepath.Join(dir, "metadata.json"),
			[]byte(`{"documentType": "Invoice", "documentId": "5", "documentDate": "2026-10-31", "files": ["rechnung.pdf"]}`), 0o660))
		h.must(os.WriteFile(filepath.Join(dir, "~$brief.docx"), nil, 0o660))
		h.pass()
		kit.Holds(t, "status file", h.status(), "STILL COPYING (1)\n  Wagner 5              waits for rechnung.pdf, named in its list, and still has ~$brief.docx since 00:0")
		h.pass()
		h.pass() // now it is late
		kit.Holds(t, "status file", h.status(), "PLEASE FIX (1)\n  Wagner 5              waits for rechnung.pdf")
		if w := h.d.State().Drops[0].Watch; w.Mode != watch.Poll || w.ModeReason != "configured" {
			t.Errorf("mode = %q because %q, want %q because %q", w.Mode, w.ModeReason, watch.Poll, "configured")
		}
		h.must(os.Remove(filepath.Join(dir, "~$brief.docx")))
		h.must(os.WriteFile(filepath.Join(dir, "rechnung.pdf"), []byte("x"), 0o660))
		h.becomes("Wagner 5 archived")
	})
	inBubble(t, func(c *Config) { c.Drops[0].Rules.Complete = "marker" }, func(h *testDaemon) {
		h.drop("Otto 19", "19", "one", false)
		h.becomes()
		kit.Holds(t, "status file", h.status(), "Otto 19               no .done file yet since 00:0")
		h.must(os.WriteFile(filepath.Join(h.path, "Otto 19/.done"), nil, 0o660))
		h.becomes("Otto 19 archived")
	})
}
