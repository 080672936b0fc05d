package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"vaultd/internal/present"
)

const (
	maxCommands = 16               // at once, of each of the two kinds of people
	maxReserve  = 4                // more, for a quick question while all others are taken
	maxArriving = 64               // connections of each kind whose request is still to come
	quickTime   = 30 * time.Second // for a whole quick question in the reserve
)

// lane is the room that one kind of people has, so that neither the others nor his own commands that hang, or wait for
// somebody to read on, keep an administrator from asking how it stands.
type lane struct {
	arriving, places, reserve chan struct{}
}

func newLane() lane {
	return lane{make(chan struct{}, maxArriving), make(chan struct{}, maxCommands), make(chan struct{}, maxReserve)}
}

// take gets a place in the first of the rooms that has one; leave gives it back and is nil where there is none.
func take(rooms ...chan struct{}) (leave func()) {
	for _, room := range rooms {
		select {
		case room <- struct{}{}:
			return sync.OnceFunc(func() { <-room })
		default:
		}
	}
	return nil
}

// quickCommands have places of their own when all others are taken: they say how it stands.
var quickCommands = []string{"status", "version"}

const tooMany = "too many commands at once; try again in a moment"

// admit lets in who may ask, while there is room for him.
func (s *control) admit(ctx context.Context, conn *net.UnixConn, p peer) {
	if !s.allowed(p) {
		end(conn, exitRights, fmt.Sprintf("%s may not give commands to this vaultd; root, its own user and members of access.groups may", present.UserName(p.uid)))
		return
	}
	lane := s.members
	if s.owns(p) {
		lane = s.owners
	}
	arrived := take(lane.arriving)
	if arrived == nil {
		end(conn, exitTemporary, tooMany)
		return
	}
	defer arrived()
	s.handle(ctx, conn, p, lane, arrived)
}

// owns says whether he is root or the daemon's own user.
func (s *control) owns(p peer) bool { return p.uid == 0 || p.uid == s.uid }

func (s *control) allowed(p peer) bool {
	return s.owns(p) || slices.ContainsFunc(p.groups, func(g uint32) bool { return slices.Contains(s.groups, g) })
}
