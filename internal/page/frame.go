package page

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/web"
)

// frame is what every page has around its body. Its methods are what the templates call.
type frame struct {
	Visitor web.Visitor
	Title   string
	Query   string // in the search field
	IsLive  bool   // the script keeps it fresh
	Body    any

	about   About
	clock   present.Clock
	tag     language.Tag
	printer *message.Printer
}

var (
	languages = []language.Tag{language.English, language.German} // the first is for those who understand none of them
	matcher   = language.NewMatcher(languages)
)

func newFrame(about About, v web.Visitor, r *http.Request) *frame {
	_, i := language.MatchStrings(matcher, r.Header.Get("Accept-Language"))
	tag := languages[i]
	return &frame{Visitor: v, about: about, clock: about.Clock, tag: tag, printer: message.NewPrinter(tag, message.Catalog(texts))}
}

// Lang returns the language of the page, as HTML names it.
func (f *frame) Lang() string { return f.tag.String() }

// T returns a text in the language of the page. The key is the English text.
func (f *frame) T(key string, args ...any) string { return f.printer.Sprintf(key, args...) }

// FormatNumber writes a count in the way of the language.
func (f *frame) FormatNumber(n any) string { return f.printer.Sprintf("%d", n) }

// separators returns what stands before a fraction and between thousands.
func (f *frame) separators() (point, group string) {
	if f.tag == language.German {
		return ",", "."
	}
	return ".", ","
}

// FormatDecimal writes a decimal text with all its digits in the way of the language; anything else it leaves alone.
func (f *frame) FormatDecimal(text string) string {
	if _, err := archive.ParseDecimal(text); err != nil {
		return sanitize.Text(text)
	}
	point, group := f.separators()
	sign, digits := "", text
	if rest, isNegative := strings.CutPrefix(text, "-"); isNegative {
		sign, digits = "\u2212", rest
	}
	whole, fraction, hasFraction := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + group + whole[i:]
	}
	if hasFraction {
		whole += point + fraction
	}
	return sign + whole
}

// FormatAmount writes an amount with its currency.
func (f *frame) FormatAmount(m archive.Document) string {
	if m.Amount == "" {
		return ""
	}
	return strings.TrimSpace(f.FormatDecimal(string(m.Amount)) + " " + sanitize.Text(m.Currency))
}

// FormatSize writes bytes in decimal units.
func (f *frame) FormatSize(n int64) string {
	if n < 0 {
		return f.T("not known")
	}
	if n == 1 {
		return f.T("1 byte")
	}
	if n < 1000 {
		return f.T("%d bytes", n)
	}
	point, _ := f.separators()
	return strings.Replace(present.FormatSize(n), ".", point, 1)
}

// ExactSize writes bytes in decimal units, and beside them to the last byte.
func (f *frame) ExactSize(n int64) string {
	if n < 1000 {
		return f.FormatSize(n)
	}
	return fmt.Sprintf("%s (%s)", f.FormatSize(n), f.T("%d bytes", n))
}

var germanMonths = [...]string{"Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."}

// dateText writes a day.
func (f *frame) dateText(t time.Time) string {
	if f.tag == language.German {
		return strconv.Itoa(t.Day()) + ". " + germanMonths[t.Month()-1] + " " + strconv.Itoa(t.Year())
	}
	return t.Format("2 Jan 2006")
}

// FormatTime writes a moment to the minute; "–" for none.
func (f *frame) FormatTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t = t.In(f.clock.Location)
	if f.clock.IsToday(t) {
		return f.T("today %s", t.Format("15:04"))
	}
	return f.dateText(t) + ", " + t.Format("15:04")
}

// FormatTimeOf is Time for a moment that may be missing.
func (f *frame) FormatTimeOf(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return f.FormatTime(*t)
}

// FormatExactTime writes a moment to the second with its zone.
func (f *frame) FormatExactTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t = t.In(f.clock.Location)
	return f.dateText(t) + ", " + t.Format("15:04:05 MST")
}

// Now is the moment of the page.
func (f *frame) Now() string { return f.FormatExactTime(f.clock.Now) }

// FormatDay writes a document's date, which is text; what is no date it leaves alone.
func (f *frame) FormatDay(date string) string {
	day := present.FormatDay(date)
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return sanitize.Text(day)
	}
	return f.dateText(t)
}

// FormatAge writes how long ago a moment is.
func (f *frame) FormatAge(t time.Time) string { return f.FormatSpan(f.clock.Now.Sub(t)) }

// FormatSpan writes a span of time in its largest units.
func (f *frame) FormatSpan(d time.Duration) string {
	d = max(d, 0)
	switch hours := int(d.Hours()); {
	case d < time.Minute:
		return f.T("%d s", int(d.Seconds()))
	case d < time.Hour:
		return f.T("%d min", int(d.Minutes()))
	case hours < 10:
		return f.T("%d h %d min", hours, int(d.Minutes())%60)
	case hours < 72:
		return f.T("%d h", hours)
	default:
		return f.T("%d days", hours/24)
	}
}

// Sanitize makes a text of a file, a folder or the service fit to be shown.
func (f *frame) Sanitize(text string) string { return sanitize.Text(text) }

// DescribeState writes the state of an entry with its mark.
func (f *frame) DescribeState(e ledger.Entry) string {
	word, mark, hasMark := strings.Cut(present.StateText(e), " ")
	if !hasMark {
		return f.T(word)
	}
	return f.T(word) + ", " + f.T(mark)
}

// Mood says how good a state is: good, bad, or calm for what is on its way. It is the class of its mark.
func (f *frame) Mood(e ledger.Entry) string {
	switch {
	case e.Contradicted || e.IsArchivedTwice() || e.Recipient == ledger.RecipientRejected:
		return "bad"
	case e.State == ledger.Archived || e.State == ledger.Delivered || e.State == ledger.Duplicate:
		return "good"
	case e.State == ledger.Rejected || e.State == ledger.Quarantined || e.State == ledger.Unclear:
		return "bad"
	}
	return "calm"
}

// IsTest reports whether nothing on the page is evidence, because the environment is no production.
func (f *frame) IsTest() bool { return f.about.Environment != "production" }

// Host names the machine; empty for visitors without the right to read.
func (f *frame) Host() string {
	if !f.Visitor.Rights.Read {
		return ""
	}
	return sanitize.Text(f.about.Host)
}

// Version names the program's version.
func (f *frame) Version() string { return f.about.Version }
