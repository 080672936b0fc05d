package readings

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

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
				t.Parallel()
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
	s, d := sending(setup{}, "", "")
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
				if e.Route != ledger.Network || e.State != ledger.Sending || !e.WasDocumentSent() || gone.Load() != nil {
					return nil
				}
				gone.Store(string(e.NetworkNumber()))
				all, err := filepath.Glob(filepath.Join(d.w.dir, "state", "spool", "*"+e.Key.String()+"*"))
				if len(all) != 1 {
					d.w.t.Errorf("the spool has %q of the entry %s", all, e.Key)
					return err
				}
				return errors.Join(os.Remove(all[0]), d.w.service.OccupyBumID(string(e.NetworkNumber())))
			})
		}
	}
	virtual(t, s, func(t *testing.T, w *world) {
		opened.Store(w.daemon)
		d.rests(24*hour, func(e ledger.Entry) bool {
			if string(e.NetworkNumber()) == gone.Load() {
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
