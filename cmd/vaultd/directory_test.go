package main_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// withNetwork writes the section of the network into the configuration of a site.
func (s *site) withNetwork(address string) {
	s.t.Helper()
	s.edit("drops:", "network: {base_url: "+address+", auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
}

// dayFromNow is a day as the directory writes it.
func dayFromNow(days int) string { return time.Now().AddDate(0, 0, days).Format(time.DateOnly) }

const (
	otto = "552100554"
	anna = "732829320"
	carl = "404833048"
)

// frenchLines are the lines of a directory: Otto has a valid one and one that is over, Anna one that is over.
func frenchLines() []emulator.DirectoryLine {
	return []emulator.DirectoryLine{
		{SIREN: otto, Name: "Otto SARL", AddressingIdentifier: otto + "_A", AddressingSuffix: "A", RoutingIdentifier: "R-0001", AdministrativeStatus: "A", DateTo: dayFromNow(40)},
		{SIREN: otto, SIRET: otto + "00013", Name: "Otto Lyon", AddressingIdentifier: otto + "_OLD", AddressingSuffix: "OLD", RoutingIdentifier: "R-0002", AdministrativeStatus: "C", DateTo: dayFromNow(40), EffectiveEndDate: dayFromNow(-3)},
		{SIREN: anna, Name: "Anna SA", AddressingIdentifier: anna + "_A", DateTo: dayFromNow(-3)},
	}
}

// directorySite is a configuration with a network whose directory has the lines.
func directorySite(t *testing.T, cfg emulator.Config, lines []emulator.DirectoryLine) *site {
	t.Helper()
	emu, address := serveEmulator(t, cfg)
	kit.Must(t, emu.SetDirectory(lines))
	s := newSite(t, address, fast)
	s.withNetwork(address)
	return s
}

// The first words and the exit code say whether a line is valid today. It works beside a running daemon as without one.
func TestDirectory_ValidToday(t *testing.T) {
	t.Parallel()
	s := directorySite(t, emulator.Config{Readings: emulator.Readings{Network: emulator.NetworkReadings{Directory: "all"}}}, frenchLines())
	rows := map[string]struct {
		args  []string
		code  int
		words []string
	}{
		"Valid":      {[]string{otto}, exitDone, []string{"VALID TODAY  SIREN " + otto + " has 1 valid line ", "Otto SARL", otto + "_A", "R-0001", dayFromNow(40), "no: ended"}},
		"Blanks":     {[]string{"552 100\u00a0554"}, exitDone, []string{"VALID TODAY  SIREN " + otto}},
		"Groups":     {[]string{"552", "100", "554"}, exitDone, []string{"VALID TODAY  SIREN " + otto}},
		"Suffix":     {[]string{otto, "--suffix", "A"}, exitDone, []string{"VALID TODAY"}},
		"OverSuffix": {[]string{otto, "--suffix", "OLD"}, exitDifferences, []string{"NO VALID LINE TODAY  SIREN " + otto, "Check it with the recipient", "no: ended"}},
		"Routing":    {[]string{otto, "--routing", "R-0002"}, exitDifferences, []string{"NO VALID LINE TODAY"}},
		"Facility":   {[]string{otto + "00013"}, exitDifferences, []string{"NO VALID LINE TODAY  SIRET " + otto + "00013", "Otto Lyon"}},
		"Over":       {[]string{anna}, exitDifferences, []string{"NO VALID LINE TODAY  SIREN " + anna, "Anna SA", dayFromNow(-3)}},
		"None":       {[]string{carl}, exitDifferences, []string{"NO VALID LINE TODAY  The directory has no line for SIREN " + carl}},
	}
	look := func(where string) {
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			row := rows[name]
			out, code := s.vaultd(append([]string{"directory"}, row.args...)...)
			kit.Check(t, code == row.code && strings.HasPrefix(out, row.words[0]),
				"%s %s: exit %d: %s", where, name, code, out)
			for _, word := range row.words {
				kit.Check(t, strings.Contains(out, word), "%s %s does not say %q: %s", where, name, word, out)
			}
		}
	}
	look("alone")
	p := s.begin()
	look("beside")
	if code := p.stop(t); code != 0 {
		t.Errorf("run: exit %d: %s", code, p.out)
	}
}

// With --json each line is an object, with the line as the directory told it.
func TestDirectory_JSON(t *testing.T) {
	t.Parallel()
	s := directorySite(t, emulator.Config{Readings: emulator.Readings{Network: emulator.NetworkReadings{Directory: "all"}}}, frenchLines())
	out, code := s.vaultd("directory", otto, "--json")
	type directoryLine struct {
		ValidToday, Asked                               bool
		Company, Facility, SIRET, EffectiveEnd, Routing *string
		Line                                            json.RawMessage
	}
	var lines []directoryLine
	for text := range strings.Lines(out) {
		var l directoryLine
		err := json.Unmarshal([]byte(text), &l)
		kit.Need(t, err == nil, "%v: %s", err, out)
		lines = append(lines, l)
	}
	if code != exitDone || len(lines) != 2 || !lines[0].ValidToday || lines[1].ValidToday || !lines[1].Asked || *lines[0].Company != "Otto SARL" || *lines[1].Facility != "Otto Lyon" ||
		lines[0].SIRET != nil || lines[0].EffectiveEnd != nil || *lines[1].EffectiveEnd != dayFromNow(-3) || *lines[0].Routing != "R-0001" || !strings.Contains(string(lines[1].Line), `"address"`) {
		t.Errorf("exit %d: %s", code, out)
	}
	out, code = s.vaultd("directory", carl, "--json")
	kit.Check(t, code == exitDifferences && out == "", "none: exit %d: %s", code, out)
}

// What is no number is never asked for, and the message says what is wrong with it.
func TestDirectory_NoNumber(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://127.0.0.1:1", fast)
	s.withNetwork("http://127.0.0.1:1")
	for args, want := range map[string]string{
		"12345678":                  "12345678 is neither a SIREN nor a SIRET: it has 8 digits; a SIREN has 9, a SIRET 14",
		"552100554 55210055400013":  "it has 23 digits",
		"FR12":                      `"FR12" is neither a SIREN nor a SIRET: they have digits alone`,
		"\x1b[2J":                   "digits alone",
		"":                          "is missing",
		otto + " --routing R-1":     "a routing identifier has at least 5 characters",
		otto + " --addressing 1234": "unknown flag",
	} {
		out, code := s.vaultd(append([]string{"directory"}, strings.Fields(args)...)...)
		kit.Check(t, code == exitUsage && strings.Contains(out, want) && !strings.Contains(out, "\x1b"),
			"%q: exit %d: %s", args, code, out)
	}
}

// Each failure has its exit code, names the request, and says what to do.
func TestDirectory_Failures(t *testing.T) {
	t.Parallel()
	status := func(code int) emulator.Config {
		return emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "network-directory", Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: code}}}}}
	}
	type row struct {
		cfg  emulator.Config
		code int
		do   string
	}
	kit.Rows(t, map[string]row{
		"401":        {status(401), exitRights, "hint: look at network.auth"},
		"403":        {status(403), exitRights, "hint: look at network.auth"},
		"404":        {status(404), exitFailed, "hint: look at network.base_url"},
		"422":        {status(422), exitFailed, "hint: look at what was asked for"},
		"500":        {status(500), exitUnavailable, "vaultd doctor tries them"},
		"503":        {status(503), exitTemporary, "hint: the network asks for fewer calls"},
		"NotEnabled": {emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "network-directory", Rate: 1, Fault: emulator.Fault{Kind: emulator.Coded, Code: "Error.001.0012"}}}}}, exitRights, "hint: ask the provider to enable this account to ask the directory"},
		"Web":        {emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "network-directory", Rate: 1, Fault: emulator.Fault{Kind: emulator.HTML}}}}}, exitUnavailable, "service.proxy"},
	}, func(t *testing.T, row row) {
		t.Parallel()
		s := directorySite(t, row.cfg, frenchLines())
		out, code := s.vaultd("directory", otto)
		if code != row.code || !strings.Contains(out, "ask the directory of France") || !strings.Contains(out, "request id") || !strings.Contains(out, row.do) || strings.Contains(out, "LINE") {
			t.Errorf("exit %d: %s", code, out)
		}
	})
	s := newSite(t, "http://127.0.0.1:1", fast)
	kit.Holds(t, "without a network: exit", s.must(exitConfig, "directory", otto), "add a section network")
	s.withNetwork("http://127.0.0.1:1")
	kit.Holds(t, "unreachable: exit", s.must(exitUnavailable, "directory", otto), "connection refused", "hint: ")
}

// serveDirectory answers each call with one body.
func serveDirectory(t *testing.T, body string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // nothing stays behind in a bubble
		b := bufio.NewWriter(w)
		_, _ = b.WriteString(body)
		_ = b.Flush()
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// No text of the directory controls the terminal, and a line of somebody else, or one that ends on a day that cannot be read, is not valid.
func TestDirectory_HostileLines(t *testing.T) {
	t.Parallel()
	type row struct {
		body, args string
		code       int
		word       string
	}
	kit.Rows(t, map[string]row{
		"Control":    {`[{"siren":"` + otto + `","routingIdentifier":"\u001b[2J\u202e` + strings.Repeat("x", 9000) + `","legalUnit":{"businessName":"\u001b]0;x\u0007Otto\nVALID"}}]`, otto, exitDone, "]0;x Otto VALID"},
		"Somebody":   {`[{"siren":"` + anna + `"}]`, otto, exitDifferences, "no: not asked for"},
		"Company":    {`[{"siren":"` + otto + `"}]`, otto + "00013", exitDone, "VALID TODAY  SIRET"},
		"Facility":   {`[{"siret":"` + otto + `00021"}]`, otto + "00013", exitDifferences, "no: not asked for"},
		"Soon":       {`[{"siren":"` + otto + `","dateTo":"soon"}]`, otto, exitDifferences, "no: an end cannot be read"},
		"NoSuffix":   {`[{"siren":"` + otto + `"}]`, otto + " --suffix A", exitDifferences, "no: not asked for"},
		"Untold":     {`[{"addressingIdentifier":"` + otto + `"}]`, otto, exitDone, "VALID TODAY"},
		"NoList":     {`{"message":"ok"}`, otto, exitUnavailable, "not of a form that is known"},
		"TwiceSIREN": {`[{"siren":"` + otto + `","siren":"` + anna + `"}]`, otto, exitUnavailable, "twice"},
	}, func(t *testing.T, row row) {
		t.Parallel()
		s := newSite(t, "http://127.0.0.1:1", fast)
		s.withNetwork(serveDirectory(t, row.body))
		for _, flag := range []string{"--json=false", "--json"} {
			out, code := s.vaultd(append([]string{"directory", flag}, strings.Fields(row.args)...)...)
			if code != row.code || strings.ContainsAny(out, "\x1b\a\u202e") || flag != "--json" && !strings.Contains(out, row.word) {
				t.Errorf("%s: exit %d: %s", flag, code, out)
			}
			kit.Check(t, strings.Count(out, "\n") <= 12 && (flag == "--json" || len(out) <= 4000),
				"%s: a hostile line makes the answer long: %s", flag, out)
		}
	})
}

// A line counts by the day in France.
func TestDirectory_DayInFrance(t *testing.T) {
	s := newShelf(t)
	s.edit("drops:", "network: {base_url: "+serveDirectory(t, `[{"siren":"`+otto+`","dateTo":"2026-11-24"}]`)+", auth: {method: basic, username: u, secret_file: "+secretFile(t, "demo\n", 0o600)+"}}\ndrops:")
	for at, want := range map[string]int{"2026-11-24T22:59:59Z": exitDone, "2026-11-24T23:00:00Z": exitDifferences} {
		now := kit.Value(time.Parse(time.RFC3339, at))(t)
		out, errs, code := s.sayAt(now, "directory", otto)
		kit.Check(t, code == want, "%s: exit %d, want %d: %s%s", at, code, want, out, errs)
	}
}
