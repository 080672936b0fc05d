package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

const sound = `service:
  environment: test
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}
state_dir: /var/lib/vaultd
drops:
  - name: acme-in
    path: /srv/invoices/acme-in
    vault: V-1
  - {name: beta, path: /srv/b, vault: V-2}
time_zone: Europe/Berlin
status:
  poll_min: 1m
`

// The usual mistakes in YAML are told by the line and the column where they stand, with what is right.
func TestConfig_UsualMistakesInYAML(t *testing.T) {
	for name, row := range map[string]struct{ right, wrong, at, problem string }{
		"Tab":                  {"  base_url", "\tbase_url", "3:1", "a tab stands where only spaces may stand"},
		"TabInAnItem":          {"    vault: V-1", "  \tvault: V-1", "9:3", "a tab stands where only spaces may stand"},
		"QuoteInTheMiddle":     {"https://vault.example", `"https://vault.example`, "3:13", "a quote is opened here and never closed in this line"},
		"QuoteClosedByAnother": {"https://vault.example\n", "\"https://vault.example\n  request_id_header: \"X\"\n", "3:13", "a quote is opened here and never closed in this line"},
		"SingleQuote":          {"Europe/Berlin", "'Europe/Berlin", "11:12", "a quote is opened here and never closed in this line"},
		"QuoteInBraces":        {"basic", `"basic`, "4:18", "a quote is opened here and never closed in this line"},
		"NoSpaceAfterColon":    {"base_url: ", "base_url:", "3:12", "a space is missing after the colon"},
		"NoSpaceInAnItem":      {"vault: V-1", "vault:V-1", "9:11", "a space is missing after the colon"},
		"NoSpaceAlone":         {"poll_min: 1m", "poll_min:1m", "13:3", "is not a section: a space is missing after the colon"},
		"NoColon":              {"base_url: ", "base_url ", "3:11", "a colon is missing"},
		"NoColonOfASection":    {"drops:\n", "drops\n", "6:6", "a colon is missing"},
		"TooShallow":           {"    path", "   path", "8:4", "the indentation of this line fits no line above it"},
		"TooDeep":              {"    path", "     path", "8:6", "this line is indented deeper than the line above, which opens no section"},
		"DeepOnTop":            {"time_zone", " time_zone", "11:2", "the indentation of this line fits no line above it"},
		"NoSpaceAfterDash":     {"  - name", "  -name", "7:4", "a space is missing after the dash"},
		"BracketOpen":          {"vault: V-2}", "vault: V-2", "10:5", "a bracket is opened here and never closed"},
		"BracketNotOpened":     {"auth: {", "auth: ", "4:15", "a second colon stands in this line"},
		"At":                   {"vault: V-1", "vault: @V-1", "9:12", "a text may not begin with @"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := load(t, strings.Replace(sound, row.right, row.wrong, 1), nil)
			if len(faults) != 1 || fmt.Sprintf("%d:%d", faults[0].Line, faults[0].Col) != row.at || !strings.HasSuffix(faults[0].Problem, row.problem) || faults[0].Hint == "" {
				t.Fatalf("want %s: %s, got %v", row.at, row.problem, faults)
			}
			lines := strings.Split(faults[0].Excerpt, "\n")
			if caret := strings.Index(lines[1], "^") - strings.Index(lines[1], "|") - 1; caret != faults[0].Col {
				t.Errorf("the caret stands under column %d:\n%s", caret, faults[0].Excerpt)
			}
		})
	}
}

// In a file that is right no mistake is seen: the examples and the forms that YAML has for texts and lists.
func TestConfig_NoMistakeIsSeenInWhatIsRight(t *testing.T) {
	example := kit.Value(os.ReadFile("../../config.example.yaml"))(t)
	for _, text := range []string{string(example), sound,
		"a: |\n  b:c\n  \"d\n  \te\nf: 'it''s'\ng: \"x\\\"y\" # z: \"\n",
		"a:\n- b\n- http://x/y\n- c: d\n  e: [1,\n    'f', {g: h}]\ni: {j: k,\n  l: m}\n\"n\": 'o: p'\n",
	} {
		lines := strings.Split(text, "\n")
		m, found := findUsualMistake(lines, mark{line: len(lines)})
		kit.Check(t, !found, "%+v in\n%s", m, text)
	}
}
