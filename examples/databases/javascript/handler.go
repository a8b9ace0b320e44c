// Package javascript serves orders as JSON to browsers.
package javascript

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Order is an order in JSON. Its ID is a string there, because of its type.
type Order struct {
	ID       snowflake.ID `json:"id"`
	Customer string       `json:"customer"`
}

// Handler returns a handler of POST /orders, which returns a new order, and of
// PUT /orders/ID, which returns the order that it received.
func Handler(gen *generator.Generator) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		id, err := gen.NextContext(r.Context())
		if err != nil {
			slog.ErrorContext(r.Context(), "no ID", "err", err) // it may name the store's host and user
			http.Error(w, "no ID now: try again", http.StatusServiceUnavailable)
			return
		}
		answer(w, Order{ID: id, Customer: r.FormValue("customer")})
	})
	mux.HandleFunc("PUT /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := snowflake.Parse(r.PathValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var order Order
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if order.ID != id {
			http.Error(w, "this is order "+order.ID.String(), http.StatusConflict)
			return
		}
		answer(w, order)
	})
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client hung up
}
