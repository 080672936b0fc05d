package networkapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"vaultd/internal/apicall"
)

// DirectoryQuery says which lines of the directory of France are asked for. At least one field is set. Assumption: the
// specification shows neither the query nor the answer; both are as deployed services have them.
type DirectoryQuery struct {
	SIREN      string // 9 digits
	SIRET      string // 14 digits
	Suffix     string // of the addressing
	Addressing string // identifier, at least 9 characters
	Routing    string // identifier, at least 5 characters
}

// Forms of the fields of a DirectoryQuery.
const (
	SIRENDigits     = 9
	SIRETDigits     = 14
	shortAddressing = 9
	shortRouting    = 5
)

// values returns the parameters of a query, or says what is wrong with it.
func (q DirectoryQuery) values() (url.Values, error) {
	v := url.Values{}
	for name, value := range map[string]string{"siren": q.SIREN, "siret": q.SIRET, "addressing_suffix": q.Suffix, "addressing_identifier": q.Addressing, "routing_identifier": q.Routing} {
		if value != "" {
			v.Set(name, value)
		}
	}
	switch {
	case len(v) == 0:
		return nil, errors.New("nothing is asked for")
	case q.SIREN != "" && !isDigits(q.SIREN, SIRENDigits):
		return nil, errors.New("a SIREN has 9 digits")
	case q.SIRET != "" && !isDigits(q.SIRET, SIRETDigits):
		return nil, errors.New("a SIRET has 14 digits")
	case q.Addressing != "" && len(q.Addressing) < shortAddressing:
		return nil, errors.New("an addressing identifier has at least 9 characters")
	case q.Routing != "" && len(q.Routing) < shortRouting:
		return nil, errors.New("a routing identifier has at least 5 characters")
	}
	return v, nil
}

// Check says what is wrong with a query; such a query is not sent.
func (q DirectoryQuery) Check() error {
	_, err := q.values()
	return err
}

// Matches reports whether a line is of whom was asked for. A line that tells no SIREN or no SIRET is: the directory gave it as an answer,
// and one without a SIRET is that of the whole company. But a line that tells no suffix has none.
func (q DirectoryQuery) Matches(l DirectoryLine) bool {
	siren := q.SIREN
	if q.SIRET != "" {
		siren = startOf(q.SIRET)
	}
	isOther := func(told, asked string) bool { return told != "" && asked != "" && told != asked }
	lacks := func(told, asked string) bool { return asked != "" && told != asked }
	return !isOther(l.SIREN, siren) && !isOther(startOf(l.SIRET), siren) && !isOther(l.SIRET, q.SIRET) &&
		!lacks(l.Suffix, q.Suffix) && !lacks(l.Addressing, q.Addressing) && !lacks(l.Routing, q.Routing)
}

// startOf returns the SIREN with which a SIRET begins.
func startOf(siret string) string { return siret[:min(SIRENDigits, len(siret))] }

// isDigits reports whether s is n digits.
func isDigits(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789") == "" }

// DirectoryLine is one line of the directory. Each field is empty where the directory does not tell it.
type DirectoryLine struct {
	SIREN, SIRET                string
	Routing, Addressing, Suffix string // identifiers
	To, EffectiveEnd            string // the days on which the line ends, as they were written
	BusinessName, LegalStatus   string // of the legal unit
	FacilityName, Status        string // of the facility
	Raw                         []byte // the line as it came
}

// IsValidOn reports whether the line has not ended before the day. A line without an end is valid. An end that cannot be read may
// have passed, so such a line is not. Assumption: a line is valid until the end of its last day, and the statuses do not count.
func (l DirectoryLine) IsValidOn(day time.Time) bool {
	for _, end := range []string{l.To, l.EffectiveEnd} {
		if end == "" {
			continue
		}
		at := apicall.ParseTime(end)
		if at.IsZero() || at.Format(time.DateOnly) < day.Format(time.DateOnly) {
			return false
		}
	}
	return true
}

// HasUnreadableEnd reports whether the line has an end that cannot be read as a day.
func (l DirectoryLine) HasUnreadableEnd() bool {
	return slices.ContainsFunc([]string{l.To, l.EffectiveEnd}, func(end string) bool { return end != "" && apicall.ParseTime(end).IsZero() })
}

// Directory asks the directory of France. No lines without an error mean that it has none. The outcome Refused of an error means
// that it does not take the query.
func (c *Client) Directory(ctx context.Context, q DirectoryQuery) ([]DirectoryLine, error) {
	const op = "ask the directory of France"
	query, err := q.values()
	if err != nil {
		return nil, requestError(op, err.Error())
	}
	// This is a GET, and changes nothing. A crash in it loses an answer that is asked for again.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Path: splitPath(directoryPath), Query: query, Limit: directoryAnswer, Header: acceptJSON})
	if err != nil {
		return nil, apicall.BlameRequest(err, http.StatusUnprocessableEntity)
	}
	defer ans.Release()
	lines, err := readDirectory(ans.Body)
	if err != nil {
		return nil, ans.Unreadable(op, err)
	}
	return lines, nil
}

// lineFields are the properties of a line.
var lineFields = []string{"siren", "siret", "routingIdentifier", "addressingIdentifier", "addressingSuffix", "dateTo", "effectiveEndDate", "legalUnit", "facility"}

// readDirectory reads the lines of an answer.
func readDirectory(body []byte) ([]DirectoryLine, error) {
	records, err := apicall.ReadRecords(body, "lines", "items", "results")
	if err != nil {
		return nil, err
	}
	var lines []DirectoryLine
	for _, raw := range records {
		line, err := readLine(raw)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// readLine reads one line. An object that has none of a line's properties is no line.
func readLine(raw json.RawMessage) (DirectoryLine, error) {
	f, err := apicall.ReadFields(raw, lineFields...)
	if err != nil {
		return DirectoryLine{}, err
	}
	if len(f) == 0 {
		return DirectoryLine{}, apicall.ErrUnknownForm
	}
	unit, err := readPart(f["legalUnit"], "siren", "businessName", "administrativeStatus")
	if err != nil {
		return DirectoryLine{}, err
	}
	facility, err := readPart(f["facility"], "siret", "name", "administrativeStatus")
	if err != nil {
		return DirectoryLine{}, err
	}
	l := DirectoryLine{SIREN: f.Word("siren"), SIRET: f.Word("siret"), Routing: f.Word("routingIdentifier"), Addressing: f.Word("addressingIdentifier"),
		Suffix: f.Word("addressingSuffix"), To: f.Word("dateTo"), EffectiveEnd: f.Word("effectiveEndDate"),
		BusinessName: unit.Word("businessName"), LegalStatus: unit.Word("administrativeStatus"),
		FacilityName: facility.Word("name"), Status: facility.Word("administrativeStatus"), Raw: bytes.Clone(raw)}
	if l.SIREN == "" {
		l.SIREN = unit.Word("siren")
	}
	if l.SIRET == "" {
		l.SIRET = facility.Word("siret")
	}
	return l, nil
}

// readPart reads an object that may be absent or null.
func readPart(raw json.RawMessage, names ...string) (apicall.Fields, error) {
	if isEmpty(raw) {
		return nil, nil
	}
	return apicall.ReadFields(raw, names...)
}
