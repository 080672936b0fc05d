package present

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
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
		kit.Need(t, err == nil && len(all) == want, "owner %d: %+v, %v; want %d remarks", owner, all, err, want)
		if want > 0 && (all[0].What != "other-owner" || !strings.Contains(all[0].Text, `"Alice 7" (acme-in)`) || !strings.Contains(all[0].Text, "uid 900001; this is a folder of uid 900002")) {
			t.Errorf("%+v, want both owners named", all[0])
		}
	}
}

// I12: a corrected invoice, with the same number and the same file and another amount,
// is named once, and for its number.
func TestFindRemarks_I12_SameNumberComesFirst(t *testing.T) {
	first := ledger.Entry{Key: archive.Key{1}, State: ledger.Archived, Folder: "Huber 1", Drop: "acme-in"}
	other := archive.Key{3}
	for name, row := range map[string]struct {
		e    ledger.Entry
		want []string
	}{
		"NumberAndFiles": {ledger.Entry{SameNumber: first.Key, SameContent: first.Key}, []string{"same-number: same invoice number, sender, date and files, with other metadata, as \"Huber 1\""}},
		"OfTwoOthers":    {ledger.Entry{SameNumber: first.Key, SameContent: other}, []string{"same-number: same invoice number, sender and date as \"Huber 1\"", "same-content: same files"}},
		"FilesAlone":     {ledger.Entry{SameContent: first.Key}, []string{"same-content: same files, with other metadata, as \"Huber 1\""}},
	} {
		all, err := FindRemarks(book{first.Key: first}, row.e, time.UTC)
		kit.Need(t, err == nil && len(all) == len(row.want), "%s: %+v, %v; want %q", name, all, err, row.want)
		for i, want := range row.want {
			got := all[i].What + ": " + all[i].Text
			kit.Check(t, strings.HasPrefix(got, want), "%s: %q, want it to begin with %q", name, got, want)
		}
	}
	a := (ledger.Entry{State: ledger.Archived, SameNumber: first.Key, SameContent: first.Key}).Attention()
	kit.Check(t, a == ledger.RepeatedNumber, "attention = %d, want %d", a, ledger.RepeatedNumber)
}
