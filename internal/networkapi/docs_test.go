package networkapi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I24: the page about the network lists the schemes and the types of files that
// a document may have, and says of each scheme whether its ids are checked.
func TestDocs_I24_SchemesAndTypes(t *testing.T) {
	page, err := os.ReadFile("../../docs/network.md")
	kit.Must(t, err)
	_, section, _ := strings.Cut(string(page), "### Schemes of endpoints\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| .*`([A-Z][^` ]*|:ORGNR)`.* \\| .* \\| (.*) \\|$").FindAllStringSubmatch(section, -1)
	kit.Want(t, "number of schemes", len(rows), 11)
	for _, row := range rows {
		scheme, told := row[1], row[2]
		if strings.Contains(row[0], "SE:ORGNR") {
			scheme = "SE:ORGNR"
		}
		_, isWrongScheme := checkIdentifier(scheme, "1")
		wrong, _ := checkIdentifier(scheme, "-")
		if isWrongScheme || (wrong != "") != (told != "no") {
			t.Errorf("scheme %s: got wrong scheme %v, fault %q of the id \"-\"; the page says checked: %s", scheme, isWrongScheme, wrong, told)
		}
	}
	_, sentence, _ := strings.Cut(section, "names end with ")
	sentence, _, _ = strings.Cut(sentence, ", in small")
	told := strings.Split(strings.ReplaceAll(sentence, " and ", ", "), ", ")
	want := slices.Clone(Endings)
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("types on the page = %q, want %q", told, want)
	}
}
