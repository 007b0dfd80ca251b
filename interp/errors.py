"""What every refusal raises: one sentence that says what is wrong with what, and the remedy."""


class InterpError(Exception):
    """Base of every error this package raises on purpose; its message is meant for the user."""


class PictureError(InterpError):
    """The picture cannot be read or is not acceptable."""


class ModelError(InterpError):
    """The model is unknown or does not behave as a classifier."""


class WeightsError(ModelError):
    """The weights cannot be had or do not fit the model."""


class LayerError(InterpError):
    """The layer does not exist, did not run, or cannot serve the method."""


class TargetError(InterpError):
    """The target is not one of the model's classes or cannot be read."""


class MethodError(InterpError):
    """The method is unknown, or its parameters are."""


class HookError(InterpError):
    """A hook cannot be placed, or was used outside the life of its session."""
