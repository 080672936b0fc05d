package config

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/sanitize"
	"vaultd/internal/statedir"
)

// configuredPlace is a folder that the configuration names.
type configuredPlace struct {
	what, path string
	loc        location
	hint       string // what would be right, where it is not apart from another one
}

// listRoots gives the state directory and the drop folders.
func (c *Config) listRoots() []configuredPlace {
	const hint = "write a path that neither lies in the other nor holds it"
	roots := []configuredPlace{{"state_dir", c.StateDir, location{"state_dir"}, hint}}
	for i, d := range c.Drops {
		roots = append(roots, configuredPlace{"drop " + strconv.Quote(d.Name), d.Path, dropAt(i).child("path"), hint})
	}
	return roots
}

// placesToKeepApart gives each two places of which none may be the other, lie in it or hold it. A fault stands at the first one.
func (c *Config) placesToKeepApart() iter.Seq2[configuredPlace, configuredPlace] {
	const hint = "write a path outside of it: what is moved there must not be taken again"
	roots := c.listRoots()
	return func(yield func(p, other configuredPlace) bool) {
		for i, p := range roots {
			for _, earlier := range roots[:i] {
				if !yield(p, earlier) {
					return
				}
			}
		}
		for i, d := range c.Drops {
			to := configuredPlace{"to", d.AfterArchive.To, dropAt(i).child("after_archive").child("to"), hint}
			for _, root := range roots {
				if !yield(to, root) {
					return
				}
			}
		}
	}
}

// alias says that two places overlap on this machine, though their paths do not.
type alias struct {
	place, other configuredPlace
	relation     string // of place to other, in words
}

func (a alias) describe() string {
	return fmt.Sprintf("%s %s %s (%s, %s): a link or a mount leads there, and %s and %s must be apart", sanitize.Text(a.place.path), a.relation,
		sanitize.Text(a.other.path), a.other.loc, a.other.what, a.place.what, a.other.what)
}

// findAliases looks where the places really lie. It gives those that are not apart because a link or a mount leads from one to the other.
// The spool counts as a place of its own: it may be a mount. A place that cannot be looked at, or does not answer, is left out.
func (c *Config) findAliases() (found []alias) {
	position := lookAtPositions(c.listPathsToLookAt())
	add := func(p, other configuredPlace) {
		if relation := describeRelation(position[p.path], position[other.path]); relation != "" && !pathsOverlap(p.path, other.path) {
			found = append(found, alias{p, other, relation})
		}
	}
	for p, other := range c.placesToKeepApart() {
		add(p, other)
		if other.what != "state_dir" {
			continue
		}
		// What lies in state_dir by its path was found above; these may be mounts.
		for _, own := range statedir.OwnFolders(other.path) {
			add(p, configuredPlace{"a folder of vaultd's own", own, other.loc, ""})
		}
	}
	return found
}

func (c *Config) listPathsToLookAt() (paths []string) {
	for p, other := range c.placesToKeepApart() {
		paths = append(paths, p.path, other.path)
	}
	return append(paths, statedir.OwnFolders(c.StateDir)...)
}

// lookPatience is how long the shares together may take to tell where the folders lie. A share that hangs must not keep vaultd from
// working in the others.
const lookPatience = 5 * time.Second

// lookAtPositions looks at all paths at once. A look that hangs cannot be ended: it is left behind.
func lookAtPositions(paths []string) map[string][]durable.Position {
	type answer struct {
		path      string
		positions []durable.Position
	}
	asked, answers := map[string]bool{"": true}, make(chan answer, len(paths)) // room for each: nobody may hear the late ones
	for _, path := range paths {
		if asked[path] {
			continue
		}
		asked[path] = true
		go func() {
			positions, err := durable.FindPositions(path)
			if err != nil {
				positions = nil // whoever works there meets the same error, and says so
			}
			answers <- answer{path, positions}
		}()
	}
	over := time.NewTimer(lookPatience)
	defer over.Stop()
	told := map[string][]durable.Position{}
	for range len(asked) - 1 {
		select {
		case a := <-answers:
			told[a.path] = a.positions
		case <-over.C:
			return told
		}
	}
	return told
}

// describeRelation says in words how the place at a lies to the one at b; "" where they are apart.
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

// pathsOverlap says whether one of two clean absolute paths is the other, or lies in it.
func pathsOverlap(a, b string) bool {
	in := func(inner, outer string) bool {
		return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
	}
	return in(a, b) || in(b, a)
}
