package web

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSequences(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	assert.Equal(t, `{"name":"orders","mode":"segmented","first":"1","last":"1","count":1,"stride":1}`+"\n", s.ask(t, "POST", "/v1/sequences/orders").body)
	assert.Equal(t, `{"name":"orders","mode":"segmented","first":"2","last":"11","count":10,"stride":1}`+"\n", s.ask(t, "POST", "/v1/sequences/orders?n=10").body)
	assert.Equal(t, `{"name":"tickets","mode":"ordered","start":"1","stride":1,"offset":0,"max":"3","next":"1","last":"0","left":"3"}`+"\n", s.ask(t, "GET", "/v1/sequences/tickets").body)
	assert.Equal(t, `{"name":"tickets","mode":"ordered","first":"1","last":"3","count":3,"stride":1}`+"\n", s.ask(t, "POST", "/v1/sequences/tickets?n=3").body)
	assert.Equal(t, `{"name":"tickets","mode":"ordered","start":"1","stride":1,"offset":0,"max":"3","next":null,"last":"3","left":"0"}`+"\n", s.ask(t, "GET", "/v1/sequences/tickets").body)
	p := refusal(t, s.ask(t, "POST", "/v1/sequences/tickets"))
	assert.Equal(t, http.StatusConflict, p.Status)
	assert.Equal(t, "out_of_range", p.Code)
	assert.Zero(t, p.RetryAfter, "it never helps to repeat this")
	assert.EqualValues(t, 1+10+3, s.observer.Items())
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	before := decode[status](t, s.ask(t, "GET", "/v1/status"))
	assert.True(t, before.Ready)
	assert.Empty(t, before.Sequences)
	s.ask(t, "POST", "/v1/ids?n=100")
	s.ask(t, "POST", "/v1/sequences/orders?n=7")
	after := decode[status](t, s.ask(t, "GET", "/v1/status"))
	assert.EqualValues(t, 107, after.Items-before.Items)
	assert.Greater(t, after.Uptime, before.Uptime)
	assert.EqualValues(t, 1, after.Node)
	if assert.Len(t, after.Sequences, 1) {
		assert.Equal(t, "orders", after.Sequences[0].Name)
		assert.EqualValues(t, 7, after.Sequences[0].Issued)
		assert.GreaterOrEqual(t, after.Sequences[0].Last, int64(7))
	}

	s.issuer.Drain()
	draining := decode[status](t, s.ask(t, "GET", "/v1/status"))
	assert.False(t, draining.Ready)
	assert.Contains(t, draining.Reason, "about to stop")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	got := decode[layout](t, s.ask(t, "GET", "/v1/layout"))
	assert.Equal(t, layout{
		Layout: s.issuer.Layout().String(), Epoch: "2025-01-01T00:00:00Z", Tick: 0.001, TimeBits: 41, NodeBits: 10, SequenceBits: 12,
		Node: 1, Strategy: "wait up to 1s", MaxBatch: 10_000, MaxNumbers: 1_000_000,
	}, got)
}

// Readiness follows the grant; being alive does not, and does not need a generator.
func TestProbes(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	assert.Equal(t, http.StatusOK, s.ask(t, "GET", "/readyz").StatusCode)
	s.issuer.Config().Spare = math.MaxInt64
	p := refusal(t, s.ask(t, "GET", "/readyz"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	assert.True(t, strings.HasPrefix(p.Detail, "the grant has "), p.Detail)

	s.issuer.Config().Generator, s.issuer.Config().Store = nil, nil
	assert.Equal(t, "ok\n", s.ask(t, "GET", "/livez").body)
}
