package books

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/expected"
	"vaultd/internal/extractapi"
)

// table is what is known of the table of one extract before its records are read.
type table struct {
	names   columns
	columns []string // as the definition has them, sorted
	unread  string   // why there is no definition; empty: there is one
}

// readTable reads the table definition of an extract. If there is none, or one
// of a form that is not known, the records are read by all names of the settings.
// The error is a *DefinitionError where the definition has none of the names of a
// column.
func (b *Books) readTable(m custody.Manifest) (table, error) {
	t := table{names: b.settings.columns()}
	if m.Definition.Stored == "" {
		t.unread = "the service had none when the extract came"
		return t, nil
	}
	raw, err := b.custody.ReadDefinition(m)
	if err != nil {
		return t, err
	}
	if archive.Sum(raw) != m.Definition.SHA256 {
		return t, &unreadableError{errors.New("its table definition is not the one of its manifest: run vaultd extracts verify")}
	}
	d := definition{}
	read, err := extractapi.ReadDefinition(raw)
	for _, one := range read.Tables {
		d[one.Name] = []string{}
		for _, c := range one.Columns {
			d[one.Name] = append(d[one.Name], c.Name)
		}
	}
	own, hasTable := d[b.settings.Table]
	switch {
	case err != nil || len(d) == 0:
		t.unread = "it has a form that is not known"
	case hasTable && len(own) == 0:
		t.unread = "it has no column of " + b.settings.Table
	default:
		t.columns = slices.Sorted(slices.Values(own))
		day := dayOf(m.HeldAt, b.settings.Location)
		if !m.Extract.Made.IsZero() {
			day = dayOf(m.Extract.Made, b.settings.Location)
		}
		// Also where the extract has no file of the table: a table that was
		// renamed has none for ever, and nothing else tells.
		t.names, err = d.choose(b.settings, string(m.Extract.ID), day)
		return t, err
	}
	return t, nil
}

// DefinitionError says that a table definition does not have what the settings
// name. Its extract is not read: records without that column would be read as
// if it were empty.
type DefinitionError struct {
	Extract string // its number
	Day     Day    // on which the extract was made
	Setting string // such as books.columns.amount
	Wanted  []string
	Near    []string // what the definition has instead, the nearest first; at most three
}

// Error implements error.
func (e *DefinitionError) Error() string {
	var wanted []string
	for _, w := range e.Wanted {
		wanted = append(wanted, strconv.Quote(w))
	}
	text := fmt.Sprintf("%s %s is not in the table definition of %s (extract %s)", e.Setting, strings.Join(wanted, " or "), e.Day, e.Extract)
	if len(e.Near) > 0 {
		text += "; near: " + strings.Join(e.Near, ", ") + ". If it was renamed, write both names as a list"
	}
	return text
}

// definition is one table definition: the columns of each table, by its name.
type definition map[string][]string

// choose returns the columns with the names that the definition has in front.
// The others stay: the definition is that of the day on which the extract was
// held, and its records may be older. The error is a *DefinitionError where the
// definition has none of the names.
func (d definition) choose(s Settings, extract string, day Day) (columns, error) {
	wanted := s.columns()
	has, ok := d[s.Table]
	if !ok {
		return wanted, &DefinitionError{extract, day, "books.table", []string{s.Table}, nearest(s.Table, slices.Collect(maps.Keys(d)))}
	}
	for i, names := range wanted {
		at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(has, name) })
		switch {
		case at >= 0:
			wanted[i] = append([]string{names[at]}, slices.Delete(slices.Clone(names), at, at+1)...)
		case len(names) > 0:
			return wanted, &DefinitionError{extract, day, fieldNames[i], names, nearest(names[0], has)}
		}
	}
	return wanted, nil
}

// nearest returns the three names that are most like the wanted one, and no
// name that is not like it.
func nearest(wanted string, names []string) []string {
	type one struct {
		name string
		far  int
	}
	var all []one
	for _, n := range names {
		far := expected.EditDistance(strings.ToLower(wanted), strings.ToLower(n))
		if strings.Contains(strings.ToLower(n), strings.ToLower(wanted)) {
			far = 1
		}
		if far <= max(2, len(wanted)/2) {
			all = append(all, one{n, far})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name)) })
	var near []string
	for _, o := range all[:min(len(all), 3)] {
		near = append(near, o.name)
	}
	return near
}
