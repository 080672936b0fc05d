package page

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/books"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
	"vaultd/internal/web"
)

var (
	inTemplate = regexp.MustCompile(`\.T "((?:[^"\\]|\\.)*)"|\.View\w+ "([^"]*)" "([^"]*)"`)
	inCode     = regexp.MustCompile(`(?:\.T|\badd)\(("(?:[^"\\]|\\.)*")|field\{("(?:[^"\\]|\\.)*"),|(?:Text|Do): +("(?:[^"\\]|\\.)*")|bad\(("[^"]*")|Problem, status = ("[^"]*")`)
	inFields   = regexp.MustCompile(`\{("[A-Za-z' -]+"), `)
)

// keysOfTexts returns every text that the pages ask for.
func keysOfTexts(t *testing.T) map[string]bool {
	keys := map[string]bool{}
	read := func(path string, found func(text string)) {
		data := kit.Value(os.ReadFile(path))(t)
		found(string(data))
	}
	templates, _ := filepath.Glob("templates/*.html")
	for _, path := range templates {
		read(path, func(text string) {
			for _, m := range inTemplate.FindAllStringSubmatch(text, -1) {
				for _, key := range m[1:] {
					keys[key] = true
				}
			}
		})
	}
	unquoted := func(pattern *regexp.Regexp) func(string) {
		return func(text string) {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				for _, quoted := range m[1:] {
					if key, err := strconv.Unquote(quoted); err == nil {
						keys[key] = true
					}
				}
			}
		}
	}
	for _, path := range []string{"page.go", "frame.go", "status.go", "needs.go", "search.go", "document.go", "report.go", "books.go", "charts.go", "../../cmd/vaultd/pages.go", "../../cmd/vaultd/pages_books.go"} {
		read(path, unquoted(inCode))
	}
	for _, path := range []string{"search.go", "document.go"} {
		read(path, unquoted(inFields))
	}
	for _, k := range present.NeedKinds() {
		for _, text := range []string{k.Title, k.Advice} {
			if text != "" {
				keys[text] = true
			}
		}
	}
	for _, texts := range []map[string]string{eventTexts, pdfEventTexts, networkEventTexts, addressNames} {
		for _, text := range texts {
			keys[text] = true
		}
	}
	for _, v := range books.Verdicts() {
		keys[v.Words()] = true
	}
	for _, result := range booksResults {
		keys[result] = true
	}
	keys[booksTitle] = true
	for _, s := range ledger.States() {
		keys[s.String()] = true
		for _, r := range ledger.Routes() {
			keys[present.Dossier{Entry: ledger.Entry{State: s, Route: r}}.JSON(present.Clock{}).Meaning] = true
		}
	}
	for s := ledger.Claimed; ; s++ {
		if strings.HasPrefix(s.String(), "unknown") {
			break
		}
		keys["folder "+s.String()] = true
	}
	doubtful := ledger.Entry{State: ledger.Rejected, InDoubt: true, Hold: true, PossibleDouble: true, Contradicted: true, Resolved: true, Reviewed: true}
	for _, r := range ledger.Routes() {
		doubtful.Route = r
		keys[present.Dossier{Entry: doubtful}.JSON(present.Clock{}).Meaning] = true
		for _, flag := range present.ExplainFlags(doubtful) {
			keys[flag] = true
		}
		w := present.WordsOf(r)
		if !r.HasVaults() { // of a kept folder of the archive the page has words of its own
			keys[w.KeptPlace] = true
		}
		for _, key := range []string{w.Package, w.Files, w.Registrations, w.SameAs, w.Evidence, w.Says, w.AnswersTitle, w.Group, w.NoEvidence, w.Identity} {
			keys[key] = true
		}
	}
	for _, e := range []ledger.Entry{
		{Route: ledger.Network, State: ledger.Delivered, Contradicted: true, Recipient: ledger.RecipientRejected, Means: ledger.ElectronicDelivery, ValidationFile: "ref-1"},
		{Recipient: ledger.RecipientAccepted, Means: ledger.EmailDelivery}, {Means: ledger.MailDelivery},
	} {
		keys[present.DescribeMeans(e)], keys[present.DescribeRecipient(e)], keys[present.DescribeValidation(e)] = true, true, true
		for _, flag := range present.ExplainFlags(e) {
			keys[flag] = true
		}
	}
	for _, r := range []watch.Reason{watch.LooseFile, watch.NotFile, watch.NoSidecar, watch.Copying, watch.StillOpen, watch.Temporary, watch.Placeholder, watch.Incomplete, watch.NoRight, watch.Busy, watch.OtherDevice,
		watch.ReadOnly, watch.NoRoom, watch.Failed, watch.Queued, watch.Held} {
		keys[string(r)] = true
	}
	delete(keys, "")
	return keys
}

// sameInBoth are texts that are the same in German, and names of things that have no German one.
var sameInBoth = map[string]bool{"bumId": true, "clientUUID": true, "SHA-256": true, "ZIP": true, "PDF": true, "folder ": true}

// Every text of the pages has a German one, with the same places for values.
func TestTexts_GermanIsWhole(t *testing.T) {
	verbs := regexp.MustCompile(`%[a-z]`)
	for key := range keysOfTexts(t) {
		text, ok := german[key]
		kit.Check(t, ok || sameInBoth[key], "no German text for %q", key)
		kit.Check(t, !ok || fmt.Sprint(verbs.FindAllString(text, -1)) == fmt.Sprint(verbs.FindAllString(key, -1)),
			"%q and %q have other values", key, text)
	}
}

// No German text is left over from a text that nobody asks for any more.
func TestTexts_NoneIsLeftOver(t *testing.T) {
	asked := keysOfTexts(t)
	computed := map[string]bool{ // made of several parts, or of registrations and marks of states
		"on hold": true, "in doubt": true, "resolved": true, "CONTRADICTED": true, "TWICE": true, "DIFFERS": true, "REJECTED AFTER DELIVERY": true, "CONTRADICTED BY THE NETWORK": true, "REJECTED BY RECIPIENT": true, "not taken": true, "folder gone": true,
		"ARCHIVED TWICE: the archive says so of more than one registration": true, "unused: no byte was ever sent to it": true, "bytes may have arrived": true,
		"the content arrived": true, "failed at the archive, or never got anything": true, "refused by the store, which may have kept it": true,
		"it may have been delivered": true, "over, and nothing was delivered": true, "unused: no document was ever sent under it": true, "the business network may have it": true,
		"the business network has it": true, "rejected by the business network, or never there": true, "refused by the business network": true,
	}
	for key := range german {
		kit.Check(t, asked[key] || computed[key], "nobody asks for %q", key)
	}
}

// The German words are those of people who keep books: one word for one thing, and no word that means another thing to them.
func TestTexts_GermanWordsForAccountants(t *testing.T) {
	for wrong, why := range map[string]string{
		"Hauptbuch": "is the general ledger; the ledger of vaultd is the Nachweisbuch", "Bilanz": "is the balance sheet; the balance of vaultd is the Abgleich",
		"Beleg": "is the invoice itself; a receipt of vaultd is a Quittung", "Ablage": "is where papers stay; a drop folder is an Eingangsordner",
		"Tresor": "is a safe; a vault is an Archivbereich", "eim Archiv angemeldet": "is signing in; the archive registers", "Anmeldung": "is signing in; the archive has a Registrierung",
		"erunterladen": "is Abruf, as the right to fetch", "Vorhersage": "is Prognose", "Platte": "is Datenträger",
	} {
		for key, text := range german {
			kit.Check(t, !strings.Contains(text, wrong),
				"%q: %q: %s %s, want text without %q", key, text, wrong, why, wrong)
		}
	}
}

// Every event of the ledger has words of its own, and no words are of an event that there is not.
func TestTexts_EveryEventHasWords(t *testing.T) {
	sources := kit.Value(filepath.Glob("../ledger/*.go"))(t)
	events := map[string]bool{}
	sources = slices.DeleteFunc(sources, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) // which have events of their own
	for _, path := range sources {
		source := kit.Value(os.ReadFile(path))(t)
		for _, found := range journalName.FindAllStringSubmatch(string(source), -1) {
			events[found[1]] = true
		}
	}
	kit.Need(t, len(events) >= 40, "%d events: the test sees nothing", len(events))
	all := maps.Clone(eventTexts)
	for _, texts := range routeEventTexts {
		maps.Copy(all, texts)
	}
	for event := range events {
		kit.Check(t, all[event] != "", "%q has no words", event)
	}
	for words := range all {
		event, in, isInState := strings.Cut(words, " ")
		_, err := ledger.ParseState(in)
		kit.Check(t, events[event] && (!isInState || err == nil), "%q is no event", words)
	}
}

var journalName = regexp.MustCompile(`\) JournalName\(\) string\s*\{ return "([a-z-]+)" \}`)

// frameOf returns the frame of a page in the language that a browser asks for.
func frameOf(language string) *frame {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Language", language)
	now := time.Date(2026, 11, 20, 14, 32, 0, 0, time.UTC)
	return newFrame(About{Clock: present.Clock{Now: now, Location: time.FixedZone("CET", 3600)}, Environment: "production"}, web.Visitor{}, r)
}

// Numbers, amounts, sizes, days and times are written as the language does, with every digit.
func TestFrame_WritesAsTheLanguageDoes(t *testing.T) {
	type words struct{ Number, Amount, Small, Size, Day, Time, Today, Span, Lang string }
	noon := time.Date(2026, 3, 7, 11, 5, 9, 0, time.UTC)
	for language, want := range map[string]words{
		"en-GB":       {"1,234,567", "−12,345,678.90", "0.005", "1.5 MB", "7 Mar 2026", "7 Mar 2026, 12:05", "today 15:32", "5 h 28 min", "en"},
		"de-AT, en":   {"1.234.567", "−12.345.678,90", "0,005", "1,5 MB", "7. März 2026", "7. März 2026, 12:05", "heute 15:32", "5 h 28 min", "de"},
		"fr, *;q=0.1": {"1,234,567", "−12,345,678.90", "0.005", "1.5 MB", "7 Mar 2026", "7 Mar 2026, 12:05", "today 15:32", "5 h 28 min", "en"},
	} {
		f := frameOf(language)
		got := words{f.FormatNumber(1234567), f.FormatDecimal("-12345678.90"), f.FormatDecimal("0.005"), f.FormatSize(1_500_000), f.FormatDay("2026-03-07T00:00:00Z"), f.FormatTime(noon),
			f.FormatTime(f.clock.Now), f.FormatSpan(5*time.Hour + 28*time.Minute), f.Lang()}
		kit.Want(t, language, got, want)
	}
}

// A size is in the language of the page also below a kilobyte, and its bytes are not told twice.
func TestFrame_Sizes(t *testing.T) {
	for language, want := range map[string][5]string{
		"en": {"1 byte", "154 bytes", "154 bytes", "2.2 MB", "2.2 MB (2,200,000 bytes)"},
		"de": {"1 Byte", "154 Bytes", "154 Bytes", "2,2 MB", "2,2 MB (2.200.000 Bytes)"},
	} {
		f := frameOf(language)
		kit.Want(t, language, [5]string{f.FormatSize(1), f.FormatSize(154), f.ExactSize(154), f.FormatSize(2_200_000), f.ExactSize(2_200_000)}, want)
	}
}
