package page

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// ReportOrder says which report is asked for.
type ReportOrder struct {
	Year      int    // 0: all years
	Month     int    // 1 to 12; 0: the whole year
	Form      string // html, xlsx or csv
	Separator rune   // of csv
}

// fileForm is a form that a report can have.
type fileForm struct {
	form, kind string
	separator  rune // of csv
}

// reportForms are the forms that can be asked for.
var reportForms = map[string]fileForm{
	"html": {"html", "text/html; charset=utf-8", ','}, "xlsx": {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ','},
	"csv": {"csv", "text/csv; charset=utf-8", ','}, "csv-semicolon": {"csv", "text/csv; charset=utf-8", ';'},
}

const yearsOffered = 15

// reportBody is what can be chosen.
type reportBody struct {
	Years, Months []int
}

func (p *Pages) showReport(w http.ResponseWriter, r *http.Request, f *frame) error {
	var b reportBody
	now := f.clock.Now.In(f.clock.Location)
	for i := range yearsOffered {
		b.Years = append(b.Years, now.Year()-i)
	}
	for m := range 12 {
		b.Months = append(b.Months, m+1)
	}
	f.writePage(w, http.StatusOK, "report", f.T("Report"), b)
	return nil
}

var germanMonthNames = [...]string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"}

// MonthName names a month.
func (f *frame) MonthName(m int) string {
	if f.Lang() == "de" {
		return germanMonthNames[m-1]
	}
	return time.Month(m).String()
}

// writeReport makes a report. It is a POST, because it reads the whole ledger.
func (p *Pages) writeReport(w http.ResponseWriter, r *http.Request, f *frame) error {
	order, kind, refusal := parseOrder(r)
	if refusal != nil {
		return refusal
	}
	giveTime(w)
	return p.source.Report(r.Context(), f.Visitor.Name, order, func(name string) io.Writer {
		giveTime(w) // anew, for its way to the visitor
		return beginFile(w, name, kind)
	})
}

func parseOrder(r *http.Request) (o ReportOrder, kind string, refusal *Refusal) {
	bad := func(text string) (ReportOrder, string, *Refusal) {
		return o, "", &Refusal{Status: http.StatusBadRequest, Text: text, Do: "Go back and choose again."}
	}
	form, ok := reportForms[r.PostFormValue("form")]
	if !ok {
		return bad("This form of a report is not known.")
	}
	o.Form, o.Separator = form.form, form.separator
	for _, one := range []struct {
		name        string
		into        *int
		least, most int
	}{{"year", &o.Year, 1970, 9999}, {"month", &o.Month, 1, 12}} {
		text := r.PostFormValue(one.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < one.least || n > one.most {
			return bad("This year or month is not known.")
		}
		*one.into = n
	}
	if o.Month != 0 && o.Year == 0 {
		return bad("A month needs a year.")
	}
	return o, form.kind, nil
}
