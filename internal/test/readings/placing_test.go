package readings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I11: a rejected folder that cannot be put back for a while comes back with the reason why it was rejected, and not with what was in the way.
func TestReading_I11_ReasonOutlivesWhatIsInTheWay(t *testing.T) {
	virtual(t, setup{}, func(t *testing.T, w *world) {
		inTheWay := filepath.Join(w.path(0), "_rejected")
		kit.Must(w.t, os.WriteFile(inTheWay, nil, 0o600))
		aside := filepath.Join(w.dir, "aside")
		kit.Must(w.t, os.Mkdir(aside, 0o770))
		kit.Must(w.t, os.WriteFile(filepath.Join(aside, "a.pdf"), []byte("%PDF-1.7"), 0o660))
		kit.Must(w.t, os.WriteFile(filepath.Join(aside, "metadata.json"), []byte("{"), 0o660))
		kit.Must(w.t, os.Rename(aside, filepath.Join(w.path(0), "broken")))
		rejected := func() (e ledger.Entry) {
			for _, one := range w.entries() {
				if one.State == ledger.Rejected {
					e = one
				}
			}
			return e
		}
		w.pass(2*hour, time.Minute, never)
		e := rejected()
		if e.Source != ledger.Claimed || e.Attempt == 0 {
			t.Errorf("%+v, want e.Source = ledger.Claimed, e.Attempt other than 0", e)
		}
		kit.Must(w.t, os.Remove(inTheWay))
		w.pass(2*hour, time.Minute, func() bool { return rejected().Source == ledger.Returned })
		if text := w.reason(); !strings.Contains(text, "metadata.json") || strings.Contains(text, "_rejected\"") || rejected().Cause != e.Cause {
			t.Errorf("the reason is:\n%s\n%+v", text, e.Cause)
		}
	})
}
