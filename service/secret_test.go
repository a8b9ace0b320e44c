package service_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/service"
)

// A token is in no log, metric, error or page, whether it is right or wrong, and however it is
// sent. The server logs every request, at all levels.
func TestTokensAreNotShown(t *testing.T) {
	t.Parallel()
	const right, limited, wrong = "right-0123456789abcdef", "limited-0123456789abcdef", "wrong-0123456789abcdef"
	r := start(t, func(c *service.Config) {
		c.AccessLog = 1
		c.Clients = []service.Client{
			{Name: "shop", Token: right, Sequences: []string{"orders"}},
			{Name: "slow", Token: limited, Rate: 0.001, Burst: 1},
		}
	})
	var shown strings.Builder // all that clients are sent
	for _, commands := range [][]string{
		{"AUTH " + right, "ID", "INCR orders", "INCR other", "INFO", "CONFIG GET *", "CLIENT LIST", "CLIENT INFO", "COMMAND"},
		{"AUTH shop " + right, "ID"},
		{"AUTH " + limited, "ID", "ID"},
		{"AUTH " + wrong, "ID"},
		{"AUTH " + wrong + " " + right, "ID"},
		{"AUTH a b " + wrong, "HELLO 3 AUTH shop " + wrong, "HELLO 9 AUTH shop " + right, "HELLO 3 AUTH shop " + right + " SETNAME x", "CLIENT LIST", "INFO"},
		{"HELLO 3 AUTH " + right},
		{"CLIENT SETNAME " + "x", "PING"},
	} {
		c := dial(t, r.resp)
		_, err := io.WriteString(c, strings.Join(commands, "\r\n")+"\r\nQUIT\r\n")
		require.NoError(t, err)
		answers, err := io.ReadAll(c)
		require.NoError(t, err)
		require.NotEmpty(t, answers)
		shown.Write(answers)
	}
	web := client(t, nil)
	for _, token := range []string{"", right, limited, limited, wrong} {
		for _, path := range []string{"POST /v1/ids", "POST /v1/ids?n=99999999", "POST /v1/sequences/orders", "POST /v1/sequences/other", "GET /v1/sequences/orders", "GET /", "GET /metrics", "GET /v1/status", "GET /openapi.json", "GET /readyz", "GET /none"} {
			method, path, _ := strings.Cut(path, " ")
			_, body := call(t, web, method, "http://"+r.http+path, token)
			shown.WriteString(body)
		}
	}
	api := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc))
	for _, header := range []string{"Bearer " + right, "Bearer " + limited, "Bearer " + limited, "Bearer " + wrong, "Basic " + wrong, wrong} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
		for _, err := range []error{
			second(api.Take(ctx, &tickflakev1.TakeRequest{Count: 1})),
			second(api.Number(ctx, &tickflakev1.NumberRequest{Name: "other", Count: 1})),
			second(api.Describe(ctx, &tickflakev1.DescribeRequest{})),
		} {
			if err != nil {
				shown.WriteString(err.Error())
			}
		}
	}
	r.stop()
	require.NoError(t, <-r.ended)

	for _, must := range []string{"shop", "slow", "unauthenticated", "forbidden", "busy"} {
		assert.Contains(t, r.log.String(), must, "the log tells of all requests")
	}
	for _, token := range []string{right, limited, wrong} {
		assert.NotContains(t, shown.String(), token)
		assert.NotContains(t, r.log.String(), token)
		assert.NotContains(t, shown.String(), token[:10])
		assert.NotContains(t, r.log.String(), token[:10])
	}
	assert.Contains(t, shown.String(), "tickflake_service_requests_total", "the metrics were read")
	assert.Contains(t, shown.String(), http.StatusText(http.StatusUnauthorized))
}

func second[T any](_ T, err error) error { return err }
