package readings

import (
	"archive/zip"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// archiving is a setup in which copies of what is sent go into the first drop folder of the archive.
func archiving(s setup, notes ...string) (setup, *networkDrop) {
	s, d := sending(s, notes...)
	add := s.daemon
	s.daemon = func(dc *daemon.Config) {
		add(dc)
		dc.ArchiveSent = dropName(0)
		d.config = *dc
	}
	return s, d
}

// copyOf is the entry of the archive for the copy of a sent document; its state is None where there is none.
func (d *networkDrop) copyOf(sent ledger.Entry) (e ledger.Entry) {
	for _, e := range d.w.entries() {
		if e.Route == ledger.Vault && e.ID == archive.DeriveSentID(sent.OwnNumber()) {
			return e
		}
	}
	return e
}

// isCopied reports whether the archive has the copy of the n-th document.
func (d *networkDrop) isCopied(n int) bool {
	e := d.copyOf(d.entry(n))
	return e.State == ledger.Archived && e.Source == ledger.Kept
}

// archivedFiles are what the archive has of a copy, by name.
func (d *networkDrop) archivedFiles(e ledger.Entry) map[string]string {
	d.w.t.Helper()
	files := map[string]string{}
	for _, r := range d.w.service.Registrations() {
		if r.BumID != string(e.ArchivedRemote) {
			continue
		}
		z := kit.Value(zip.OpenReader(filepath.Join(d.w.dir, "service", "objects", r.SHA256)))(d.w.t)
		for _, f := range z.File {
			content := kit.Value(f.Open())(d.w.t)
			b := kit.Value(io.ReadAll(content))(d.w.t)
			files[f.Name] = string(b)
		}
		kit.Must(d.w.t, z.Close())
	}
	return files
}

// copiedOnce holds the copies in the archive to what was sent: each once, with all files byte for byte.
func (d *networkDrop) copiedOnce(want int) {
	w := d.w
	w.t.Helper()
	archived := 0
	for _, e := range d.entries() {
		c := d.copyOf(e)
		if c.State != ledger.Archived {
			continue
		}
		archived++
		files := d.archivedFiles(c)
		body := archive.Sum([]byte(files["sent.json"]))
		if !e.Copied || len(files) != 4 || body != e.Body || archive.Sum([]byte(files["document.json"])) != e.Metadata || !strings.HasSuffix(files["anlage.csv"], e.Folder) {
			w.t.Errorf("I4: %q is archived with %d files, and was sent as %s: %+v", e.Folder, len(files), e.Body, e)
		}
	}
	n := 0
	inArchive := func() int {
		n = 0
		for _, r := range w.service.Registrations() {
			if !r.ArchivedAt.IsZero() {
				n++
			}
		}
		return n
	}
	// The documents of the archive's own drops take their time too.
	w.pass(4*hour, time.Minute, func() bool { return inArchive() >= want+len(w.dropped) })
	kit.Check(w.t, archived == want && n == want+len(w.dropped),
		"I2: the archive has %d copies, and %d documents in all", archived, n)
}

// I1, I4: what was delivered is archived too, with all that was sent, and what was not is not.
func TestReading_I1_DeliveredIsArchivedToo(t *testing.T) {
	s, d := archiving(setup{}, "one", "CreditNote two", "emulate:undelivered", "emulate:late-reject")
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(4*hour, func(e ledger.Entry) bool {
			return e.State.IsFinal() && (e.Source == ledger.Kept || e.Source == ledger.Returned)
		})
		if !w.pass(4*hour, time.Minute, func() bool { return d.isCopied(0) && d.isCopied(1) && d.isCopied(3) }) {
			t.Errorf("%+v", d.copyOf(d.entry(0)))
		}
		w.pass(72*hour, 10*time.Minute, func() bool { return d.entry(3).Contradicted })
		d.copiedOnce(3)
		if d.entry(2).Copied || !d.entry(3).Contradicted {
			t.Errorf("%+v, want not d.entry(2).Copied, d.entry(3).Contradicted", d.entries())
		}
		w.proven()
	})
}

// I1, I14: while the drop folder of the archive is away the source waits with its package, and people can read why. Then all goes on by itself.
func TestReading_I1_CopyWaitsForItsDropFolder(t *testing.T) {
	s, d := archiving(setup{}, "one")
	virtual(t, s, func(t *testing.T, w *world) {
		away := w.path(0) + "-away"
		kit.Must(w.t, os.Rename(w.path(0), away))
		if !w.pass(hour, time.Second, func() bool { return d.entry(0).Attention() == ledger.CopyNotMade }) {
			t.Fatalf("%+v", d.entry(0))
		}
		if e := d.entry(0); e.State != ledger.Delivered || e.Source != ledger.Claimed || e.Copied || !strings.HasPrefix(e.Cause.Text, "NOT ARCHIVED YET. ") {
			t.Errorf(`%+v, want e.State = ledger.Delivered, e.Source = ledger.Claimed, not e.Copied, e.Cause.Text that begins with "NOT ARCHIVED YET. "`, e)
		}
		kit.Must(w.t, os.Rename(away, w.path(0)))
		d.rests(2*hour, isDelivered)
		if !w.pass(4*hour, time.Minute, func() bool { return d.isCopied(0) }) || d.entry(0).Cause.Code != "" {
			t.Errorf(`%+v, want w.pass(4*hour, time.Minute, func() bool { return d.isCopied(0) }), d.entry(0).Cause.Code = ""`, d.entry(0))
		}
		d.copiedOnce(1)
	})
}

// I2: where the folder of the sent document cannot be placed for hours, its copy is made once all the same.
func TestReading_I2_OneCopyWhileThePlaceIsTaken(t *testing.T) {
	s, d := archiving(setup{}, "one")
	virtual(t, s, func(t *testing.T, w *world) {
		inTheWay := filepath.Join(d.path(), "_delivered")
		kit.Must(t, os.Remove(inTheWay))
		kit.Must(t, os.WriteFile(inTheWay, nil, 0o600))
		w.pass(6*hour, time.Minute, never)
		if e := d.entry(0); e.State != ledger.Delivered || e.Source != ledger.Claimed || !e.Copied {
			t.Errorf("%+v, want e.State = ledger.Delivered, e.Source = ledger.Claimed, e.Copied", e)
		}
		kit.Must(t, os.Remove(inTheWay))
		d.rests(4*hour, isDelivered)
		if n := len(w.entries()); n != len(w.dropped)+2 { // with the document and its copy
			t.Errorf("%d entries", n)
		}
		d.copiedOnce(1)
	})
}

// I4: a package that is gone or damaged when the copy is made is made again, out of the folder. Where that is not what was sent any more, no copy is
// made, and a person reads what to do.
func TestReading_I4_CopyOfALostPackage(t *testing.T) {
	type row struct {
		harm   func(t *testing.T, pkg, folder string)
		copies bool
	}
	kit.Rows(t, map[string]row{
		"Gone":    {func(t *testing.T, pkg, _ string) { kit.Must(t, os.Remove(pkg)) }, true},
		"Damaged": {func(t *testing.T, pkg, _ string) { kit.Must(t, overwrite(pkg, flip)) }, true},
		"Changed": {func(t *testing.T, pkg, folder string) {
			kit.Must(t, os.Remove(pkg))
			kit.Must(t, overwrite(filepath.Join(folder, "anlage.csv"), flip))
		}, false},
		"Unreadable": {func(t *testing.T, pkg, folder string) {
			kit.Must(t, overwrite(pkg, flip))
			kit.Must(t, os.Remove(filepath.Join(folder, "document.json")))
		}, false},
	}, func(t *testing.T, row row) {
		s, d := archiving(setup{}, "one")
		d.every = 10 * time.Minute
		virtual(t, s, func(t *testing.T, w *world) {
			kit.Need(t, w.pass(hour, time.Second, func() bool { return d.entry(0).State == ledger.Uploaded }),
				"it was not sent")
			packages, err := filepath.Glob(filepath.Join(w.dir, "state", "spool", "*", d.entry(0).Key.String()+".zip"))
			kit.Must(t, err)
			if len(packages) == 0 {
				packages, err = filepath.Glob(filepath.Join(w.dir, "state", "spool", d.entry(0).Key.String()+"*.zip"))
				kit.Must(t, err)
			}
			kit.Need(t, len(packages) == 1, "%q, want len(packages) = 1", packages)
			folder := filepath.Join(d.path(), ".vaultd", "claimed", d.entry(0).Key.String(), folderName(0))
			saved := map[string][]byte{}
			for _, f := range []string{"anlage.csv", "document.json"} {
				saved[f], err = os.ReadFile(filepath.Join(folder, f))
				kit.Must(t, err)
			}
			row.harm(t, packages[0], folder)
			if !row.copies {
				if !w.pass(hour, time.Second, func() bool { return d.entry(0).Attention() == ledger.CopyNotMade }) || !strings.Contains(d.entry(0).Cause.Text, "is no longer what was sent") {
					t.Errorf("%+v", d.entry(0))
				}
				w.pass(hour, time.Minute, never)
				if e := d.entry(0); e.Source != ledger.Claimed || d.copyOf(e).State != ledger.None {
					t.Errorf("%+v, want e.Source = ledger.Claimed, d.copyOf(e).State = ledger.None", e)
				}
				for f, content := range saved { // a person puts it back
					kit.Must(t, os.WriteFile(filepath.Join(folder, f), content, 0o660))
				}
			}
			d.rests(2*hour, isDelivered)
			if !w.pass(4*hour, time.Minute, func() bool { return d.isCopied(0) }) {
				t.Errorf("%+v, want w.pass(4*hour, time.Minute, func() bool { return d.isCopied(0) })", d.entry(0))
			}
			d.copiedOnce(1)
		})
	})
}

// I9: a restart between the copy and its commit, and a configuration that changed meanwhile, make no second copy and lose none.
func TestReading_I9_RestartsAroundACopy(t *testing.T) {
	s, d := archiving(setup{}, "one", "two")
	virtual(t, s, func(t *testing.T, w *world) {
		for range 5 {
			w.pass(7*time.Second, time.Second, never)
			d.restart()
		}
		if !w.pass(4*hour, time.Minute, func() bool { return d.isCopied(0) && d.isCopied(1) }) {
			t.Errorf("%+v", d.entries())
		}
		d.copiedOnce(2)
		d.config.ArchiveSent = ""
		d.notes = append(d.notes, "three")
		d.drop("out-2", "R-2", "three")
		d.restart()
		w.pass(2*hour, time.Minute, func() bool { return isDelivered(d.entry(2)) })
		e := d.entry(2)
		kit.Check(t, !e.Copied && isDelivered(e), "%+v, want not e.Copied, isDelivered(e)", e)
		d.copiedOnce(2)
		w.proven()
	})
}

// flip changes a byte in the middle.
func flip(b []byte) { b[len(b)/2] ^= 0xff }

// I3, I2, I9: the package in the spool is gone, cut short or other bytes of the same length between an intent and its act, or between two acts. It is
// made again, each document is sent once, and no fewer files are counted as unused than the network has.
func TestReading_I2_NetworkPackageDamagedUnderWay(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"Gone":   os.Remove,
		"Cut":    func(p string) error { return os.Truncate(p, 10) },
		"Zeroed": func(p string) error { return overwrite(p, func(b []byte) { clear(b) }) },
		"Start":  func(p string) error { return overwrite(p, func(b []byte) { clear(b[:min(len(b), 200)]) }) },
		"Bits":   func(p string) error { return overwrite(p, func(b []byte) { b[len(b)/3] ^= 0xff; b[len(b)/2] ^= 0xff }) },
	} {
		for _, after := range []string{"network-file 1", "network-file 2", "network-send 1"} {
			t.Run(name+"/"+after, func(t *testing.T) {
				s, d := sending(setup{}, "")
				calls := 0
				d.between = func(r *http.Request, on http.RoundTripper) (*http.Response, error) {
					if r.Method != http.MethodPost {
						return on.RoundTrip(r)
					}
					calls++
					if at := map[string]int{"network-file 1": 1, "network-file 2": 2, "network-send 1": 3}[after]; calls == at {
						all := kit.Value(filepath.Glob(filepath.Join(d.w.dir, "state", "spool", "*.zip")))(d.w.t)
						for _, p := range all {
							kit.Must(d.w.t, spoil(p))
						}
						return nil, http.ErrHandlerTimeout // nobody knows what became of this call
					}
					return on.RoundTrip(r)
				}
				virtual(t, s, func(t *testing.T, w *world) {
					d.rests(24*hour, func(e ledger.Entry) bool { return isDelivered(e) })
					kit.Check(t, calls >= 3, "only %d calls were made", calls)
				})
			})
		}
	}
}

// I2, I8: a package that goes missing after its document was announced is no attempt: nothing left. So a number that the network has already
// is somebody else's, and no success of ours.
func TestReading_I8_NetworkPackageGoneBeforeItsPOST(t *testing.T) {
	s, d := sending(setup{faults: func(op string, n int) emulator.Fault {
		if op == "network-send" && n == 1 { // its document is announced once more, by itself
			return emulator.Fault{Kind: emulator.Refuse}
		}
		return emulator.Fault{}
	}}, "", "")
	var gone atomic.Value // the number of the document whose package goes
	var opened atomic.Pointer[daemon.Daemon]
	s.daemon = func(dc *daemon.Config) {
		d.add(dc)
		// Between the commit of the intent and the POST.
		dc.LedgerFault = func(op string) error {
			if op != "committed" || gone.Load() != nil || opened.Load() == nil {
				return nil
			}
			return opened.Load().Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
				if e.Route != ledger.Network || e.State != ledger.Sending || !e.WasDocumentSent() || e.Current().UploadIntents < 2 || gone.Load() != nil {
					return nil
				}
				gone.Store(string(e.OwnNumber()))
				all, err := filepath.Glob(filepath.Join(d.w.dir, "state", "spool", "*"+e.Key.String()+"*"))
				if len(all) != 1 {
					d.w.t.Errorf("the spool has %q of the entry %s", all, e.Key)
					return err
				}
				return errors.Join(os.Remove(all[0]), d.w.service.OccupyBumID(string(e.OwnNumber())))
			})
		}
	}
	virtual(t, s, func(t *testing.T, w *world) {
		opened.Store(w.daemon)
		d.rests(24*hour, func(e ledger.Entry) bool {
			if string(e.OwnNumber()) == gone.Load() {
				return e.State == ledger.Quarantined && e.Cause.Code == ledger.CauseNumberTaken
			}
			return isDelivered(e)
		})
		kit.Check(t, gone.Load() != nil, "no document waited for its POST")
	})
}

// overwrite changes the bytes of a file and leaves its length.
func overwrite(path string, change func([]byte)) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	change(b)
	return os.WriteFile(path, b, 0o600)
}
