from __future__ import annotations

from fairlease import ConfigurationError

try:
    import githubkit as _githubkit  # noqa: F401
except ImportError as error:
    raise ConfigurationError(
        f"github_worker needs the extra 'github'; pip install 'fairlease[github]' ({error})"
    ) from error
