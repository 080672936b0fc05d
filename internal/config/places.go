package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/sanitize"
	"vaultd/internal/statedir"
)

// place is a folder that the configuration names.
type place struct {
	what, path string
	loc        location
	hint       string // what would be right when it overlaps with another place
}

// placePair is two places of which none may be the other, lie in it or hold it. A fault is reported at the first one.
type placePair struct{ place, other place }

// listRoots returns the state directory, the drop folders and, where extracts are taken, their custody.
func (c *Config) listRoots() []place {
	const hint = "write a path that neither lies in the other nor holds it"
	roots := []place{{"state_dir", c.StateDir, location{"state_dir"}, hint}}
	for i, d := range c.Drops {
		roots = append(roots, place{"drop " + strconv.Quote(d.Name), d.Path, dropAt(i).child("path"), hint})
	}
	if c.Extracts.BaseURL != "" && c.Extracts.Custody != "" {
		roots = append(roots, place{"the custody of extracts", c.Extracts.Custody, locationOf("extracts.custody"), hint})
	}
	return roots
}

func (c *Config) placesToKeepApart() (pairs []placePair) {
	const hint = "write a path outside of it: what is moved there must not be taken again"
	roots := c.listRoots()
	for i, p := range roots {
		for _, earlier := range roots[:i] {
			pairs = append(pairs, placePair{p, earlier})
		}
	}
	for i, d := range c.Drops {
		to := place{"to", d.AfterArchive.To, dropAt(i).child("after_archive").child("to"), hint}
		for _, root := range roots {
			pairs = append(pairs, placePair{to, root})
		}
	}
	return pairs
}

// checkPlaces keeps the folders apart by their paths: what is inside of two of them would be taken twice, or taken for a document.
func (c *Config) checkPlaces() {
	for _, p := range c.listRoots() {
		c.applyRules(rule{p.path == "/", p.loc, "is the whole file system", "write the path of a folder of its own", nil})
	}
	for _, pair := range c.placesToKeepApart() {
		p, other := pair.place, pair.other
		overlaps := p.path != "" && other.path != "" && pathsOverlap(p.path, other.path)
		c.applyRules(rule{overlaps, p.loc, "overlaps with " + other.what, p.hint, []location{other.loc}})
	}
}

// findAliases looks where the places are on this machine, and reports each pair that overlaps although its paths do not: a link or a
// mount leads from one to the other. The folders of vaultd's own in the state directory may be mounts, so they count as places too. It
// leaves out a place that cannot be looked at or does not answer.
func (c *Config) findAliases(report func(pair placePair, problem string)) {
	pairs := c.placesToKeepApart()
	for _, pair := range pairs {
		if pair.other.what == "state_dir" {
			for _, own := range statedir.OwnFolders(c.StateDir) {
				pairs = append(pairs, placePair{pair.place, place{"a folder of vaultd's own", own, pair.other.loc, ""}})
			}
		}
	}
	positions := findPositions(pairs)
	for _, pair := range pairs {
		p, other := pair.place, pair.other
		relation := describeRelation(positions[p.path], positions[other.path])
		if relation == "" || pathsOverlap(p.path, other.path) {
			continue
		}
		report(pair, fmt.Sprintf("%s %s %s (%s, %s): a link or a mount leads there, and %s and %s must be apart", sanitize.Text(p.path), relation,
			sanitize.Text(other.path), other.loc, other.what, p.what, other.what))
	}
}

// positionPatience is how long all shares together may take to tell where the folders are. A share that hangs must not keep vaultd from
// working in the others.
const positionPatience = 5 * time.Second

// findPositions looks at all places at once. A look that hangs cannot be cancelled: its goroutine ends when the share answers.
func findPositions(pairs []placePair) map[string][]durable.Position {
	type answer struct {
		path      string
		positions []durable.Position // none where the place cannot be looked at: whoever works there reports the same error
	}
	asked, answers := map[string]bool{"": true}, make(chan answer, 2*len(pairs)) // with room for answers that come too late
	for _, pair := range pairs {
		for _, path := range []string{pair.place.path, pair.other.path} {
			if !asked[path] {
				asked[path] = true
				go func() {
					positions, err := durable.FindPositions(path)
					if err != nil {
						positions = nil
					}
					answers <- answer{path, positions}
				}()
			}
		}
	}
	timeout := time.NewTimer(positionPatience)
	defer timeout.Stop()
	found := map[string][]durable.Position{}
	for range len(asked) - 1 {
		select {
		case a := <-answers:
			found[a.path] = a.positions
		case <-timeout.C:
			return found
		}
	}
	return found
}

// describeRelation tells how the place at a is related to the one at b; "" when they are apart.
func describeRelation(a, b []durable.Position) string {
	for _, p := range a {
		for _, q := range b {
			switch {
			case p.Folder != q.Folder || !pathsOverlap(p.Below, q.Below):
			case p.Below == q.Below:
				return "is the same folder as"
			case len(p.Below) > len(q.Below):
				return "lies in"
			default:
				return "holds"
			}
		}
	}
	return ""
}

// pathsOverlap reports whether one of two clean absolute paths is the other, or lies in it.
func pathsOverlap(a, b string) bool {
	in := func(inner, outer string) bool {
		return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
	}
	return in(a, b) || in(b, a)
}
