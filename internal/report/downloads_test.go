package report

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
)

// I4: the audit counts what was downloaded and compared, of what was asked for, and names what differs.
func TestSummary_I4_DownloadedAndCompared(t *testing.T) {
	s := newShelf(t, "production")
	for i, r := range []archive.RemoteID{"r1", "r2", "r3"} {
		s.Add(fill.Item{Name: string(r), Remote: r}).Archive(noon.Add(-time.Duration(9-i)*time.Hour), time.Hour)
	}
	s.Add(fill.Item{Name: "other", Vault: "FR", Remote: "r4"}).Archive(noon.Add(-2*time.Hour), time.Hour)
	download := func(v archive.VaultID, r archive.RemoteID, outcome string) {
		t.Helper()
		m := ledger.Mark{Vault: v, Remote: r, By: ledger.Operator{UID: 1001}, At: noon}
		if _, err := s.IntendFetch(t.Context(), m, nil, 99); err != nil {
			t.Fatal(err)
		}
		if m.Name, m.Cause = ledger.MarkFetched, outcome; outcome == "" {
			return
		}
		s.Mark(m, "")
	}
	e := s.Item("r1").Entry()
	c := s.config()
	if u := examine(t, c).Summary.Unchanged; u.Text != "0 of 4 downloaded and compared, 0 differ" || u.Money != "" {
		t.Errorf(`%+v, want u.Text = "0 of 4 downloaded and compared, 0 differ", u.Money = ""`, u)
	}
	download(e.Vault, "r1", ledger.FetchSame)
	s.Item("r2").Apply(noon, ledger.ContentDiffered{})
	download(e.Vault, "r2", ledger.FetchDiffers)
	download(e.Vault, "r3", "")
	download("FR", "r4", ledger.FetchRepacked)
	c = s.config()
	c.Price = "1234.5"
	sum := examine(t, c).Summary
	if u := sum.Unchanged; u.Text != "3 of 4 downloaded and compared, 1 differ" || u.Downloads != 4 || u.Money != "4938.00" {
		t.Errorf(`%+v, want u.Text = "3 of 4 downloaded and compared, 1 differ", u.Downloads = 4, u.Money = "4938.00"`, u)
	}
	if d := doubtOf(sum, "not-downloaded"); d.Count != 1 || !strings.HasPrefix(d.Text, "Of 4 archived documents, 3 were downloaded and compared with what was sent; 1 differs.") {
		t.Errorf(`%+v, want d.Count = 1, d.Text that begins with "Of 4 archived documents, 3 were downloaded and compared with what was sent; 1 differs."`, d)
	}
	if len(sum.Needs) != 1 || sum.Needs[0].What != "download-differs" || len(sum.Needs[0].Names) != 1 || !strings.HasPrefix(sum.Needs[0].Names[0], "r2") {
		t.Errorf(`%+v, want len(sum.Needs) = 1, sum.Needs[0].What = "download-differs", len(sum.Needs[0].Names) = 1, sum.Needs[0].Names[0] that begins with "r2"`, sum.Needs)
	}
	if sum.HumanActs != 4 || len(sum.Acts) != 4 || sum.Acts[0].BumID != "r4" {
		t.Errorf(`%+v, want sum.HumanActs = 4, len(sum.Acts) = 4, sum.Acts[0].BumID = "r4"`, sum.Acts)
	}
	c.Select = Selection{Vault: "FR"}
	a := examine(t, c)
	if u := a.Summary.Unchanged; u.Archived != 1 || u.Compared != 1 || u.Differ != 0 {
		t.Errorf("of one vault: %+v", u)
	}
	if page, _ := written(t, a, "html"); !strings.Contains(page, "1 of 1 downloaded and compared, 0 differ. 4 downloads in the whole ledger, EUR 4,938.00.") {
		t.Error("the page does not say it")
	}
}
