package present

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// book is a ledger of entries without documents.
type book map[archive.Key]ledger.Entry

func (b book) Entry(k archive.Key) (ledger.Entry, bool, error) { e, ok := b[k]; return e, ok, nil }

func (book) DocumentTexts(archive.Key) (ledger.Document, bool, error) {
	return ledger.Document{}, false, nil
}

// I12: a rejection that a folder of another owner resolves is named with both owners.
func TestFindRemarks_I12_ResolvedByAnotherOwner(t *testing.T) {
	old := ledger.Entry{Key: archive.Key{1}, State: ledger.Rejected, Folder: "Alice 7", Drop: "acme-in", Owner: 900_001}
	for owner, want := range map[uint32]int{900_001: 0, 900_002: 1} {
		all, err := FindRemarks(book{old.Key: old}, ledger.Entry{Key: archive.Key{2}, Supersedes: old.Key, Owner: owner}, time.UTC)
		if err != nil || len(all) != want {
			t.Fatalf("owner %d: %+v, %v; want %d remarks", owner, all, err, want)
		}
		if want > 0 && (all[0].What != "other-owner" || !strings.Contains(all[0].Text, `"Alice 7" (acme-in)`) || !strings.Contains(all[0].Text, "uid 900001; this is a folder of uid 900002")) {
			t.Errorf("%+v, want both owners named", all[0])
		}
	}
}
