"""What a finite cache really hits: request traces, replayed."""
