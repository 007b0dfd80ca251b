"""What goes on inside a network on one picture: values, gradients, channels, attention."""
