package report

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// noon is when every report is made.
var noon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

// shelf is a ledger of which reports are made.
type shelf struct {
	*fill.Ledger
	t testing.TB
}

func newShelf(t testing.TB, environment string) *shelf {
	t.Helper()
	s := &shelf{fill.New(t, boltledger.Config{}, ledger.Info{Environment: environment}), t}
	s.Vault = "DE"
	return s
}

// filled has one of each kind that people ask for. Its bill is that of two documents of
// 3,250,000 bytes in one vault, and a small one in another.
func filled(t *testing.T, environment string) *shelf {
	t.Helper()
	s := newShelf(t, environment)
	s.Add(fill.Item{Name: "Alt 1", Vault: "FR", Size: 250_000, Document: archive.Document{Type: "Invoice", Number: "ALT-1", Date: "2025-12-31T00:00:00Z", SenderName: "Alt & Söhne"}}).Archive(noon.Add(-50*time.Hour), 9*time.Hour)
	s.Add(fill.Item{Name: "Müller 4711", Size: 1_900_000, Remote: "bum-1"}).Archive(noon.Add(-20*time.Hour), 41*time.Minute)
	s.Add(fill.Item{Name: "Gutschrift 7", Size: 1_350_000, Document: archive.Document{Type: "CreditNote", Number: "GS-7", Date: "2026-10-30T00:00:00Z",
		SenderName: "Otto KG", Amount: "-75.105", Currency: "EUR"}}).Archive(noon.Add(-19*time.Hour), 40*time.Minute)
	s.Item("Huber 88").Refuse(noon.Add(-18*time.Hour), ledger.Cause{Code: "amount-not-understood", Text: "NOT ARCHIVED. line 9\n"})
	s.Add(fill.Item{Name: nasty, Remote: "bum-3", Document: archive.Document{Type: "Invoice", Number: "=1+1", Date: "2026-10-29T08:39:03Z",
		SenderName: "<img src=x onerror=alert(1)>\u202egpj.\x1b[2J", Amount: "9007199254740993.10", Currency: "USD"}}).Send(noon.Add(-17 * time.Hour))
	s.Item(nasty).Apply(noon.Add(-16*time.Hour), ledger.WindowClosed{NotBefore: noon})
	s.Item("Kern\u202e 6").Quarantine(noon.Add(-15*time.Hour), ledger.Cause{Code: "cross-wired", Text: "the answer named another"})
	s.Item("Kern\u202e 6").Apply(noon.Add(-14*time.Hour), ledger.Held{By: ledger.Operator{UID: 1001, Reason: archive.Sum([]byte("ask first"))}})
	s.Item("Wagner 5").Claim(noon.Add(-13 * time.Hour))
	return s
}

// nasty is a folder's name that tries whatever a name can try.
const nasty = "</td></table><script>alert('x')</script>\"';=cmd|' /C calc'!A0\t\r\n"

func (s *shelf) config() Config {
	info := s.Info()
	info.ReceiptKeys = []string{"MCowBQYDK2VwAyEAhe4JE+CC8ucd7wo1ka6N73ebL0rXMdSngpnKp8xA9zA="} // each ledger makes its own
	return Config{
		Ledger: s.Ledger, Info: info, Head: s.Head(), Examined: examined(s.t, s.Ledger, s.Head(), s.Balance()), Made: noon,
		Location: time.FixedZone("CET", 3600), Program: "vaultd 1.2.0", Host: "files01", By: "anna (uid 1000)", AlertAfter: 12 * time.Hour,
		Rule:   billing.Rule{Price: "0.35", Currency: "EUR"},
		Person: func(uid uint32) string { return fmt.Sprintf("<b>user %d</b>", uid) },
		Reason: func(archive.Key, uint32) (string, error) { return "<i>ask first</i>", nil },
	}
}

// examined examines all of a ledger.
func examined(t testing.TB, l Source, head ledger.Head, b ledger.Balance) Examined {
	t.Helper()
	replay := proof.NewReplay(nil, nil)
	var at ledger.Head
	kit.Must(t, l.Lines(1, func(_ uint64, stored []byte) error {
		line, err := ledger.ParseLine(stored)
		at = at.Next(stored)
		replay.Line(at, line, err)
		return nil
	}))
	kit.Must(t, l.EntriesOldestFirst(func(e ledger.Entry) error { replay.Entry(e); return nil }))
	return Examined{Proof: replay.Finish(head, &b)}
}

func examine(t testing.TB, c Config) *Audit {
	t.Helper()
	a := kit.Value(Examine(t.Context(), c))(t)
	return a
}

// written gives one form of the report and what its end says.
func written(t testing.TB, a *Audit, form string) (string, Closing) {
	t.Helper()
	var b bytes.Buffer
	var c Closing
	var err error
	switch form {
	case "html":
		c, err = a.HTML(t.Context(), &b)
	case "csv":
		c, err = a.CSV(t.Context(), &b, ',')
	case "json":
		c, err = a.JSON(t.Context(), &b)
	case "xlsx":
		c, err = a.XLSX(t.Context(), &b)
	}
	kit.Must(t, err)
	kit.Check(t, !bytes.Contains(b.Bytes(), []byte("canary")), "an upload address in the report")
	return b.String(), c
}
