package proof

import (
	"slices"
	"strings"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// fetch writes a line about a download of vault V.
func (b *book) fetch(word, remote, outcome string) {
	b.mark(word)
	last := len(b.lines) - 1
	l := kit.Value(ledger.ParseLine(b.lines[last]))(b.t)
	l.Vault, l.Remote, l.Cause = "V", remote, outcome
	b.lines[last] = l.Encode()
}

// The last comparison of a document counts, one that failed takes nothing back, and one that never ended is none.
func TestCheck_I4_DownloadsAreCounted(t *testing.T) {
	b, _ := everyday(t)
	for _, line := range []struct{ word, remote, outcome string }{
		{ledger.MarkFetchIntended, "b1", ""}, {ledger.MarkFetched, "b1", ledger.FetchDiffers},
		{ledger.MarkFetchIntended, "b1", ""}, {ledger.MarkFetchIntended, "b1", ""},
		{ledger.MarkFetched, "b1", ledger.FetchRepacked}, {ledger.MarkFetched, "b1", ledger.FetchFailed},
		{ledger.MarkFetchIntended, "b4", ""},
		{ledger.MarkFetchIntended, "stranger", ""}, {ledger.MarkFetched, "stranger", ledger.FetchNotCompared},
	} {
		b.fetch(line.word, line.remote, line.outcome)
	}
	r := b.check(Seen{})
	kit.Want(t, "findings", r.Findings, nil)
	if want := (Sample{Archived: 2, Compared: 1}); r.Sample != want || r.Downloads.Announced != 5 {
		t.Errorf("%+v of %d downloads, want %+v", r.Sample, r.Downloads.Announced, want)
	}
	if r.Downloads.LastComparison("V", "b4") != "" || r.Downloads.LastLine("V", "b4") == 0 || r.Downloads.LastLine("V", "b6") != 0 || r.Downloads.LastLine("W", "b1") != 0 {
		t.Errorf("downloads = %+v, want b4 announced without a comparison, and b6 and vault W unknown", r.Downloads)
	}
	b.fetch(ledger.MarkFetchIntended, "b4", "")
	b.fetch(ledger.MarkFetched, "b4", ledger.FetchDiffers)
	r = b.check(Seen{})
	kit.Check(t, r.Sample.Differ == 1 && r.Sample.Compared == 2, "sample = %+v, want 1 of 2 to differ", r.Sample)
}

// I11: what came of a download that nothing announced is a finding, and so is a line that names no document or outcome.
func TestCheck_I11_DownloadWithoutAnIntent(t *testing.T) {
	for name, row := range map[string]struct {
		says  string
		lines []string // remote and outcome in turn; no outcome: the intent
	}{
		"NoIntent":     {"nothing announced it", []string{"b1", ledger.FetchSame}},
		"OfAnother":    {"nothing announced it", []string{"b1", "", "b4", ledger.FetchSame}},
		"MoreOutcomes": {"nothing announced it", []string{"b1", "", "b1", ledger.FetchSame, "b1", ledger.FetchFailed}},
		"NoDocument":   {"names no document", []string{"", ""}},
		"NoOutcome":    {"its outcome is none", []string{"b1", "", "b1", "fine"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := everyday(t)
			for i := 0; i < len(row.lines); i += 2 {
				word := ledger.MarkFetched
				if row.lines[i+1] == "" {
					word = ledger.MarkFetchIntended
				}
				b.fetch(word, row.lines[i], row.lines[i+1])
			}
			r := b.check(Seen{})
			if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == "I11" && strings.Contains(f.Text, row.says) }) {
				t.Errorf("findings = %v, want one of I11 that tells of %q", r.Findings, row.says)
			}
		})
	}
}
