package emulator

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"
)

// DirectoryLine is one line of the directory of France. Empty fields are told as null.
type DirectoryLine struct {
	SIREN                  string `json:"siren,omitempty"` // 9 digits
	SIRET                  string `json:"siret,omitempty"` // 14 digits; empty: the line is that of the whole company
	Name                   string `json:"name,omitempty"`
	RoutingIdentifier      string `json:"routingIdentifier,omitempty"`
	AddressingIdentifier   string `json:"addressingIdentifier,omitempty"`
	AddressingSuffix       string `json:"addressingSuffix,omitempty"`
	AdministrativeStatus   string `json:"administrativeStatus,omitempty"` // A (active) or C (ceased)
	DateTo                 string `json:"dateTo,omitempty"`               // the last day on which the line is valid, like 2026-12-31
	EffectiveEndDate       string `json:"effectiveEndDate,omitempty"`
	City                   string `json:"city,omitempty"`
	IsLegalUnitUndisclosed bool   `json:"isLegalUnitUndisclosed,omitempty"` // the line tells legalUnit and facility as null
}

// SetDirectory replaces the directory. It is remembered after a restart.
func (s *Server) SetDirectory(lines []DirectoryLine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindNetworkDirectory, Network: &networkLine{Directory: slices.Clone(lines)}})
}

// directoryParameters are the parameters of a look-up, and the values that each allows.
var directoryParameters = map[string]*regexp.Regexp{
	"siren":                 regexp.MustCompile(`^[0-9]{9}$`),
	"siret":                 regexp.MustCompile(`^[0-9]{14}$`),
	"addressing_suffix":     regexp.MustCompile(`^.+$`),
	"addressing_identifier": regexp.MustCompile(`^.{9,}$`),
	"routing_identifier":    regexp.MustCompile(`^.{5,}$`),
}

// lookUpDirectory answers with the lines that have every value that is asked for, as a bare array.
func (s *Server) lookUpDirectory(c *call) reply {
	asked, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil || len(asked) == 0 {
		return c.directoryRefusal("the query names nothing to look for")
	}
	for name, values := range asked {
		if pattern := directoryParameters[name]; pattern == nil || len(values) != 1 || !pattern.MatchString(values[0]) {
			return c.directoryRefusal("a parameter is unknown, or its value has the wrong form")
		}
	}
	s.mu.Lock()
	lines := s.cfg.Network.Directory
	if s.state.network.hasDirectory {
		lines = s.state.network.directory
	}
	s.mu.Unlock()
	found, hasValid := []any{}, false
	for _, l := range lines {
		if isValid := l.isValidAt(c.now); l.matches(asked) && (c.reading.Network.Directory == "all" || isValid) {
			found = append(found, l.answer())
			hasValid = hasValid || isValid
		}
	}
	if err := s.noteListed(c, asked.Get("siren"), hasValid); err != nil {
		return reply{}
	}
	return jsonReply(found)
}

// noteListed records that a whole answer names a valid line of a company, where a document without one is a violation.
func (s *Server) noteListed(c *call, siren string, hasValid bool) error {
	if !s.cfg.Network.RequiresListed || !hasValid || siren == "" || !c.fault.leavesAnswerWhole() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: c.now, Kind: kindNetworkListed, Network: &networkLine{Listed: siren}})
}

// listedFor is how long an answer of the directory lets a client send.
const listedFor = 24 * time.Hour

// frenchScheme is the scheme of a recipient whose id is a SIREN.
const frenchScheme = "FR:ORGNR"

// checkListed records a violation where a document goes to a company that the directory did not name in time. What counts is when the first file
// of it came. The caller holds mu.
func (s *Server) checkListed(c *call, bumID string, body []byte) {
	if !s.cfg.Network.RequiresListed || s.state.network.posted[bumID] != nil {
		return // a repetition is judged as the first POST was
	}
	d, problems := parseSentDocument(body)
	if len(problems) > 0 || d.scheme != frenchScheme {
		return
	}
	began := c.now
	if first, has := s.state.network.firstFiles[bumID]; has {
		began = first
	}
	if !slices.ContainsFunc(s.state.network.foundListed[d.receiver], func(at time.Time) bool { return !at.After(began) && began.Sub(at) <= listedFor }) {
		s.recordViolationLocked(c, "document %s goes to SIREN %s, of which no answer of the directory named a valid line in the 24 hours before", bumID, d.receiver)
	}
}

func (c *call) directoryRefusal(message string) reply {
	rep := c.networkRefusal(wrongField, message)
	rep.status = http.StatusUnprocessableEntity
	return rep
}

func (l DirectoryLine) matches(asked url.Values) bool {
	for name, has := range map[string]string{"siren": l.SIREN, "siret": l.SIRET, "addressing_suffix": l.AddressingSuffix,
		"addressing_identifier": l.AddressingIdentifier, "routing_identifier": l.RoutingIdentifier} {
		if asked.Has(name) && asked.Get(name) != has {
			return false
		}
	}
	return true
}

// isValidAt reports whether neither of the two last days of a line is over.
func (l DirectoryLine) isValidAt(now time.Time) bool {
	today := now.UTC().Format(time.DateOnly)
	isOver := func(day string) bool { return day != "" && day < today }
	return !isOver(l.DateTo) && !isOver(l.EffectiveEndDate)
}

func (l DirectoryLine) answer() map[string]any {
	answer := map[string]any{"routingIdentifier": orNull(l.RoutingIdentifier), "addressingIdentifier": orNull(l.AddressingIdentifier), "siren": orNull(l.SIREN),
		"siret": orNull(l.SIRET), "addressingSuffix": orNull(l.AddressingSuffix), "dateTo": orNull(l.DateTo), "effectiveEndDate": orNull(l.EffectiveEndDate),
		"history": map[string]any{}, "routingCode": nil, "legalUnit": nil, "facility": nil}
	if l.IsLegalUnitUndisclosed {
		return answer
	}
	answer["legalUnit"] = map[string]any{"siren": orNull(l.SIREN), "businessName": orNull(l.Name), "administrativeStatus": orNull(l.AdministrativeStatus)}
	if l.SIRET != "" {
		answer["facility"] = map[string]any{"siret": l.SIRET, "name": orNull(l.Name), "administrativeStatus": orNull(l.AdministrativeStatus),
			"address": map[string]any{"city": orNull(l.City)}}
	}
	return answer
}

// orNull returns nil for an empty text.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
